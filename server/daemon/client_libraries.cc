#include "server/daemon/client_libraries.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <filesystem>

#include "server/daemon/cuda_libraries.h"

namespace torpor::server {
namespace {

// Preloaded if present.
constexpr std::array<const char*, 7> kPreloaded = {
    "libcudart.so.13", "libcuda.so.1",   "libcublas.so.13",  "libcublasLt.so.13",
    "libcudnn.so.9",   "libnvrtc.so.13", "libnvidia-ml.so.1"};

}  // namespace

std::string ClientLibraryDirectory() {
  return (std::filesystem::path(ProgramDirectory()) / "../lib/torpor/client")
      .lexically_normal()
      .string();
}

std::string PreloadOf(const std::string& client_dir) {
  std::string preload;
  for (const char* const library : kPreloaded) {
    const std::string path = fmt::format("{}/{}", client_dir, library);
    if (access(path.c_str(), R_OK) == 0) preload = Prepended(preload, path);
  }
  return preload;
}

std::string Prepended(const std::string& first, const std::string& rest) {
  if (first.empty() || rest.empty()) return first + rest;
  return first + ":" + rest;
}

}  // namespace torpor::server
