#pragma once

#include <memory>
#include <vector>

#include "emulator/exec/interface/exec_error.h"
#include "emulator/exec/interface/warp_context.h"

namespace torpor::emulator {

// Machine code of one kernel variant, runnable while this lives.
class LoadedCode {
 public:
  virtual ~LoadedCode() = default;
  virtual const KernelCode& code() const = 0;
};

// Links an object of CompileKernel into the process. kInvalidPtx if it is damaged.
ExecResult<std::unique_ptr<LoadedCode>> LoadObject(const std::vector<char>& object);

}  // namespace torpor::emulator
