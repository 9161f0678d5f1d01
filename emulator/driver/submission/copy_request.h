#pragma once

#include <cuda.h>

#include "emulator/driver/submission/copy.h"

namespace torpor::emulator {

// The request of a 2D or 3D copy. CUDA_ERROR_INVALID_VALUE where it reaches out of an array,
// CUDA_ERROR_INVALID_HANDLE for what is no array.
CUresult ToRequest(const CUDA_MEMCPY2D& copy, CopyRequest& request);
CUresult ToRequest(const CUDA_MEMCPY3D& copy, CopyRequest& request);

}  // namespace torpor::emulator
