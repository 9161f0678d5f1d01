#pragma once

#include <memory>
#include <vector>

#include "emulator/exec/interface/exec_error.h"
#include "emulator/exec/interface/warp_context.h"

namespace torpor::emulator {

// Machine code of a kernel variant. The code can run while the object lives; the destructor unmaps
// the code.
class LoadedCode {
 public:
  virtual ~LoadedCode() = default;
  virtual const KernelCode& code() const = 0;
};

// Links an object of CompileKernel into the process; kInvalidPtx if the object is damaged.
// Thread-safe.
ExecResult<std::unique_ptr<LoadedCode>> LoadObject(const std::vector<char>& object);

}  // namespace torpor::emulator
