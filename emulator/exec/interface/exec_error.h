#pragma once

#include "base/result.h"

namespace torpor::emulator {

enum class ExecError {
  kInvalidPtx,      // malformed PTX, or parts that do not link: CUDA_ERROR_INVALID_PTX
  kUnsupported,     // an instruction or directive the emulator does not know; the message names it
  kNotFound,        // no such kernel or variable
  kInvalidLaunch,   // block too large, too much shared memory, ...
  kInvalidCluster,  // CUDA_ERROR_INVALID_CLUSTER_SIZE
  kTooManyThreads,  // for this kernel: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES
  kIllegalAddress,  // CUDA_ERROR_ILLEGAL_ADDRESS
  kMisalignedAddress,  // CUDA_ERROR_MISALIGNED_ADDRESS
  kTrap,               // CUDA_ERROR_LAUNCH_FAILED
  kAssert,             // a failed device assert: CUDA_ERROR_ASSERT
  kOutOfMemory,
};

template <typename T>
using ExecResult = Result<T, ExecError>;

}  // namespace torpor::emulator
