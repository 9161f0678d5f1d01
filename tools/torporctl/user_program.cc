#include "tools/torporctl/user_program.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "server/daemon/cuda_libraries.h"

namespace torpor::torporctl {
namespace {

constexpr int kExitNotExecutable = 126;

// Libraries to preload if present. LD_LIBRARY_PATH alone loses against the DT_RPATH of programs
// like the toolkit's samples.
constexpr std::array<const char*, 7> kPreloaded = {
    "libcudart.so.13", "libcuda.so.1",   "libcublas.so.13",  "libcublasLt.so.13",
    "libcudnn.so.9",   "libnvrtc.so.13", "libnvidia-ml.so.1"};

bool IsRegularFile(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

// Returns an empty string for an unset variable.
std::string FromEnvironment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

// Joins two lists of paths by a colon; either may be empty.
std::string Prepended(const std::string& first, const std::string& rest) {
  if (first.empty() || rest.empty()) return first + rest;
  return first + ":" + rest;
}

// Returns the first executable file of that name in PATH, else the first file.
std::string SearchPath(const std::string& name) {
  std::string found;
  std::string path = FromEnvironment("PATH");
  if (path.empty()) path = "/usr/local/bin:/usr/bin:/bin";
  std::string_view rest = path;
  while (!rest.empty()) {
    const std::size_t colon = std::min(rest.find(':'), rest.size());
    const std::string folder(rest.substr(0, colon));
    rest.remove_prefix(std::min(colon + 1, rest.size()));
    std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
    if (!IsRegularFile(candidate)) continue;
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
    if (found.empty()) found = std::move(candidate);
  }
  return found;
}

}  // namespace

absl::StatusOr<UserProgram> FindUserProgram(std::vector<std::string> arguments) {
  const std::string& name = arguments.front();
  const std::string path = name.find('/') == std::string::npos ? SearchPath(name) : name;
  if (!IsRegularFile(path)) {
    return absl::NotFoundError(fmt::format("{}: no such program", name));
  }
  if (access(path.c_str(), X_OK) != 0) {
    return absl::PermissionDeniedError(
        fmt::format("{}: may not be run; make it executable (chmod +x)", path));
  }
  return UserProgram{std::move(arguments), path};
}

std::map<std::string, std::string> ClientEnvironment(const std::string& client_dir,
                                                     const std::string& socket,
                                                     const std::string& token) {
  std::string preload;
  for (const char* const library : kPreloaded) {
    const std::string path = fmt::format("{}/{}", client_dir, library);
    if (access(path.c_str(), R_OK) == 0) preload = Prepended(preload, path);
  }
  return {{"TORPOR_SOCKET", socket},
          {"TORPOR_TOKEN", token},
          {"LD_LIBRARY_PATH", Prepended(client_dir, FromEnvironment("LD_LIBRARY_PATH"))},
          {"LD_PRELOAD", Prepended(preload, FromEnvironment("LD_PRELOAD"))}};
}

void SetEnvironment(const std::map<std::string, std::string>& variables) {
  for (const auto& [name, value] : variables) {
    value.empty() ? unsetenv(name.c_str()) : setenv(name.c_str(), value.c_str(), 1);
  }
}

int Execute(const UserProgram& program) {
  std::vector<char*> arguments;
  for (const std::string& argument : program.arguments) {
    arguments.push_back(const_cast<char*>(argument.c_str()));
  }
  arguments.push_back(nullptr);
  // execvp also runs scripts without a first line for their shell.
  execvp(program.path.c_str(), arguments.data());
  Say(fmt::format("cannot run {}: {}", program.path, std::strerror(errno)));
  return kExitNotExecutable;
}

void Say(const std::string& line) {
  const std::string text = "torporctl: " + line + "\n";
  std::fwrite(text.data(), 1, text.size(), stderr);
}

std::string ClientLibraryDirectory() {
  return (std::filesystem::path(server::ProgramDirectory()) / "../lib/torpor/client")
      .lexically_normal()
      .string();
}

}  // namespace torpor::torporctl
