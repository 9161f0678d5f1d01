#pragma once

#include <string>

#include "base/result.h"
#include "emulator/sass/cubin.h"

namespace torpor::sass {

enum class LiftError {
  kUnsupported,  // an instruction that is not known: the message names it and where it is
  kMalformed,    // code that leaves its text
};

// Translates a kernel of `cubin`. Returns the body of its PTX, without braces, for KernelPtx.
Result<std::string, LiftError> LiftKernel(const Cubin& cubin, const CubinKernel& kernel);

}  // namespace torpor::sass
