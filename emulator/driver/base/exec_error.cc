#include "emulator/driver/base/exec_error.h"

namespace torpor::emulator {

CUresult ToCuResult(ExecError error) {
  switch (error) {
    case ExecError::kInvalidPtx:
      return CUDA_ERROR_INVALID_PTX;
    case ExecError::kUnsupported:
      return CUDA_ERROR_NOT_SUPPORTED;
    case ExecError::kNotFound:
      return CUDA_ERROR_NOT_FOUND;
    case ExecError::kInvalidLaunch:
      return CUDA_ERROR_INVALID_VALUE;
    case ExecError::kInvalidCluster:
      return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    case ExecError::kTooManyThreads:
      return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    case ExecError::kIllegalAddress:
      return CUDA_ERROR_ILLEGAL_ADDRESS;
    case ExecError::kMisalignedAddress:
      return CUDA_ERROR_MISALIGNED_ADDRESS;
    case ExecError::kTrap:
      return CUDA_ERROR_LAUNCH_FAILED;
    case ExecError::kAssert:
      return CUDA_ERROR_ASSERT;
    case ExecError::kOutOfMemory:
      return CUDA_ERROR_OUT_OF_MEMORY;
  }
  return CUDA_ERROR_UNKNOWN;
}

}  // namespace torpor::emulator
