#include "server/daemon/cuda_libraries.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

namespace torpor::server {
namespace {

constexpr const char* kDriverLibrary = "libcuda.so.1";

// The library alone proves nothing: CUDA's container images contain the library also on machines
// without a GPU.
bool NvidiaDriverWorks() {
  if (access("/dev/nvidiactl", R_OK | W_OK) != 0) return false;
  void* const library = dlopen(kDriverLibrary, RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) return false;
  dlclose(library);
  return true;
}

}  // namespace

absl::StatusOr<CudaLibraries> FindCudaLibraries(const Config& config,
                                                const std::string& program_dir) {
  const std::filesystem::path emulator =
      (std::filesystem::path(program_dir) / "../lib/torpor/emulator").lexically_normal();
  if (!config.cuda_library_dir.empty()) {
    std::error_code error;
    const bool is_emulated =
        std::filesystem::equivalent(config.cuda_library_dir, emulator, error) && !error;
    return CudaLibraries{config.cuda_library_dir, is_emulated};
  }
  // A topology describes an emulated node, even on a machine with GPUs.
  if (config.emulator_topology.empty() && NvidiaDriverWorks()) return CudaLibraries{};
  if (access((emulator / kDriverLibrary).c_str(), R_OK) != 0) {
    return absl::NotFoundError(
        fmt::format("no GPU driver (no /dev/nvidiactl, or libcuda.so.1 does not load) and no "
                    "emulator in {}; name a folder with cuda_library_dir",
                    emulator.string()));
  }
  return CudaLibraries{emulator.string(), true};
}

std::string ProgramDirectory() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path().string();
}

}  // namespace torpor::server
