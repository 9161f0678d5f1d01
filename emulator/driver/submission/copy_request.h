#pragma once

#include <cuda.h>

#include "emulator/driver/submission/copy.h"

namespace torpor::emulator {

// Translates the parameters of a 2D or 3D copy. Returns CUDA_ERROR_INVALID_VALUE if the copy
// exceeds an array, CUDA_ERROR_INVALID_HANDLE for a handle that is not a live array.
CUresult ToRequest(const CUDA_MEMCPY2D& copy, CopyRequest& request);
CUresult ToRequest(const CUDA_MEMCPY3D& copy, CopyRequest& request);

}  // namespace torpor::emulator
