#pragma once

#include <cuda.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "emulator/driver/base/driver_result.h"
#include "emulator/driver/module/jit_log.h"
#include "emulator/exec/program.h"

namespace torpor::emulator {

// The state behind a CUlinkState: the parts of a module in linking. Not thread-safe. Reasons of
// failures go to the log.
class Linker {
 public:
  Linker(unsigned compute_capability, const JitLog& log)
      : compute_capability_(compute_capability), log_(log) {}

  // Adds PTX text, or a fatbin with PTX for the device. libcudadevrt is skipped: kernels that use
  // it fail when compiled.
  CUresult Add(CUjitInputType type, std::span<const std::byte> data, const std::string& name);
  // Adds an archive of device code by path; only libcudadevrt is accepted, and skipped.
  CUresult AddLibrary(const std::string& path);

  // Returns an input for cuModuleLoadData, valid as long as the linker.
  DriverResult<std::span<char>> Complete();

 private:
  CUresult AddFatbin(std::span<const std::byte> data, const std::string& name);
  CUresult Refuse(CUresult code, const std::string& message);

  const unsigned compute_capability_;
  JitLog log_;
  std::vector<PtxPart> parts_;
  std::vector<char> linked_;
};

}  // namespace torpor::emulator
