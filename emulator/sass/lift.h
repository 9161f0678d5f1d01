#pragma once

#include <string>

#include "base/result.h"
#include "emulator/sass/cubin.h"

namespace torpor::sass {

enum class LiftError {
  kUnsupported,  // an instruction that is not known: the message names it and where it is
  kMalformed,    // code that leaves its text
};

// The body of the kernel's PTX, without its braces, for KernelPtx. `kernel` is one of `cubin`'s.
Result<std::string, LiftError> LiftKernel(const Cubin& cubin, const Kernel& kernel);

}  // namespace torpor::sass
