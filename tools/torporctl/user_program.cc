#include "tools/torporctl/user_program.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "server/daemon/client_libraries.h"

namespace torpor::torporctl {
namespace {

constexpr int kExitNotExecutable = 126;

bool IsRegularFile(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

// Returns an empty string for an unset variable.
std::string FromEnvironment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
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
  using server::Prepended;
  return {{"TORPOR_SOCKET", socket},
          {"TORPOR_TOKEN", token},
          {"LD_LIBRARY_PATH", Prepended(client_dir, FromEnvironment("LD_LIBRARY_PATH"))},
          {"LD_PRELOAD", Prepended(server::PreloadOf(client_dir), FromEnvironment("LD_PRELOAD"))}};
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

}  // namespace torpor::torporctl
