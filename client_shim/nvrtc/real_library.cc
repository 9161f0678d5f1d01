#include "client_shim/nvrtc/real_library.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/stat.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "client_shim/core/client_core.h"

namespace torpor::shim {
namespace {

constexpr std::string_view kName = "/libnvrtc.so.13";
// docker/adopt_torpor.sh gives NVIDIA's library this name and puts ours in its place.
constexpr std::string_view kSetAside = "/libnvrtc.nvidia.so.13";

// The path of this library as passed to the loader, possibly a symbolic link.
std::string OwnPath() {
  Dl_info ours{};
  return dladdr(reinterpret_cast<const void*>(&OwnPath), &ours) != 0 ? ours.dli_fname : "";
}

// Whether the file is this library itself.
bool IsOurs(const std::string& path) {
  struct stat own {};
  struct stat other {};
  return stat(OwnPath().c_str(), &own) == 0 && stat(path.c_str(), &other) == 0 &&
         own.st_dev == other.st_dev && own.st_ino == other.st_ino;
}

void* Open(const std::string& path) {
  return IsOurs(path) ? nullptr : dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
}

void* OpenSetAside() {
  const std::string own = OwnPath();
  return Open(own.substr(0, own.rfind('/')) + std::string(kSetAside));
}

void* OpenLoaded() {
  std::string path;
  const auto look = [](dl_phdr_info* info, std::size_t, void* found) {
    const std::string_view name = info->dlpi_name;
    if (!name.ends_with(kName) || IsOurs(std::string(name))) return 0;
    *static_cast<std::string*>(found) = name;
    return 1;
  };
  dl_iterate_phdr(look, &path);
  return path.empty() ? nullptr : Open(path);
}

void* OpenInPath(std::string_view folders) {
  while (!folders.empty()) {
    const std::size_t colon = std::min(folders.find(':'), folders.size());
    const std::string folder(folders.substr(0, colon));
    folders.remove_prefix(std::min(colon + 1, folders.size()));
    if (void* const library = folder.empty() ? nullptr : Open(folder + std::string(kName)))
      return library;
  }
  return nullptr;
}

std::string Environment(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

void* OpenReal() {
  if (const std::string path = Environment("TORPOR_NVRTC"); !path.empty()) return Open(path);
  if (void* const library = OpenSetAside()) return library;
  if (void* const library = OpenLoaded()) return library;
  if (void* const library = OpenInPath(Environment("LD_LIBRARY_PATH"))) return library;
  // Uses the toolkit's other name: the loader resolves the usual name to our library.
  if (void* const library = dlopen("libnvrtc.so", RTLD_LAZY | RTLD_LOCAL)) return library;
  return OpenInPath("/usr/local/cuda/lib64:/usr/lib/x86_64-linux-gnu");
}

}  // namespace

void* RealFunction(const char* name) {
  static void* const library = OpenReal();
  void* const function = library ? dlsym(library, name) : nullptr;
  if (!function) {
    torpor_client_core()->WarnOnce(
        "nvrtc", "NVIDIA's libnvrtc.so.13 is not found: name its path in TORPOR_NVRTC");
  }
  return function;
}

}  // namespace torpor::shim
