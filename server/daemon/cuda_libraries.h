#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "server/config/config.h"

namespace torpor::server {

// Returns the folder of libcuda.so.1 and libcublas.so.13: the configured folder, else NVIDIA's
// (empty: found by the dynamic linker) if this machine has a GPU and a working driver, else the
// emulator's, `../lib/torpor/emulator` from `program_dir`. NotFound if no folder has the libraries.
struct CudaLibraries {
  std::string folder;
  bool is_emulated = false;
};
absl::StatusOr<CudaLibraries> FindCudaLibraries(const Config& config,
                                                const std::string& program_dir);

// Returns the folder of the running program.
std::string ProgramDirectory();

}  // namespace torpor::server
