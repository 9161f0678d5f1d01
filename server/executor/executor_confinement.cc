#include "server/executor/executor_confinement.h"

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"

namespace torpor::executor {
namespace {

std::string FolderOf(const std::string& path) {
  return std::filesystem::path(path).parent_path().string();
}

void AddUnlessEmpty(std::vector<std::string>& paths, const std::string& path) {
  if (!path.empty()) paths.push_back(path);
}

std::string Environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Libraries, wherever the dynamic linker looks, and what they read of the system.
std::vector<std::string> Libraries(const server::ExecutorSettings& settings) {
  std::vector<std::string> paths = {"/usr",           "/lib",  "/lib64", "/opt", "/etc/ld.so.cache",
                                    "/etc/localtime", "/proc", "/sys"};
  AddUnlessEmpty(paths, settings.cuda_library_dir);
  std::error_code failed;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", failed);
  if (!failed) AddUnlessEmpty(paths, FolderOf(FolderOf(program)));
  const std::string searched = Environment("LD_LIBRARY_PATH");
  const std::vector<std::string> folders = absl::StrSplit(searched, ':', absl::SkipEmpty());
  paths.insert(paths.end(), folders.begin(), folders.end());
  return paths;
}

// Where the emulator keeps compiled code; created, since a folder that comes later is not reached.
std::string EmulatorCache() {
  std::string folder = Environment("TORPOR_EMULATOR_CACHE_DIR");
  const std::string home = Environment("HOME");
  if (folder.empty() && !home.empty()) folder = home + "/.cache/torpor/ptx";
  std::error_code failed;
  if (!folder.empty()) std::filesystem::create_directories(folder, failed);
  return folder;
}

}  // namespace

server::Confinement ConfinementOf(const server::ExecutorSettings& settings) {
  server::Confinement confinement{
      .seccomp = settings.device.seccomp, .readable = Libraries(settings), .writable = {"/dev"}};
  AddUnlessEmpty(confinement.readable, Environment("TORPOR_EMULATOR_TOPOLOGY"));
  for (const std::string& path :
       {settings.module_dir, settings.link_profile_dir, settings.compute_cache_dir,
        FolderOf(settings.socket), FolderOf(settings.pool_socket),
        FolderOf(Environment("TORPOR_EMULATOR_NODE")), EmulatorCache()}) {
    AddUnlessEmpty(confinement.writable, path);
  }
  return confinement;
}

}  // namespace torpor::executor
