#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "server/config/config.h"

namespace torpor::server {

// The folder of libcuda.so.1 and libcublas.so.13: the configured one, else NVIDIA's (empty: the
// dynamic linker finds them) where this machine has a GPU and its driver loads, else the
// emulator's, `../lib/torpor/emulator` from `program_dir`. NotFound where there is none.
struct CudaLibraries {
  std::string folder;
  bool is_emulated = false;
};
absl::StatusOr<CudaLibraries> FindCudaLibraries(const Config& config,
                                                const std::string& program_dir);

// The folder in which the running program lies.
std::string ProgramDirectory();

}  // namespace torpor::server
