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

// What a CUlinkState names: the parts of a module that is being linked. Of one thread at a time.
// Why something failed is told to the log.
class Linker {
 public:
  Linker(unsigned compute_capability, const JitLog& log)
      : compute_capability_(compute_capability), log_(log) {}

  // PTX text, or a fatbin that holds PTX for the device. libcudadevrt is left out: what a part uses
  // of it fails where it is used.
  CUresult Add(CUjitInputType type, std::span<const std::byte> data, const std::string& name);
  // An archive of device code by its path, of which only libcudadevrt is known.
  CUresult AddLibrary(const std::string& path);

  // What cuModuleLoadData takes; valid as long as this.
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
