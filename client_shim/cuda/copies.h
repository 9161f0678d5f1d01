#pragma once

#include <cuda.h>

#include <cstddef>

#include "client_shim/cuda/entry.h"

namespace torpor::shim {

enum class CopyWait { kNo, kYes };  // whether the call waits until host memory is no longer used

// Copies between host memory, device memory and arrays, in any direction. If an array takes part,
// widths and positions in bytes must be whole texels.
CUresult CopyRectangle(const CUDA_MEMCPY2D* copy, CUstream stream, CopyWait wait);
CUresult CopyBox(const CUDA_MEMCPY3D* copy, CUstream stream, CopyWait wait);

// Sets elements of 1, 2 or 4 bytes to `value`.
CUresult SetElements(CUdeviceptr to, unsigned value, unsigned element_bytes, std::size_t count,
                     CUstream stream);
// Sets `width` elements in each of `height` rows. `pitch` is the distance of rows in bytes, a
// multiple of `element_bytes` if there are several rows.
CUresult SetRows(CUdeviceptr to, std::size_t pitch, unsigned value, unsigned element_bytes,
                 std::size_t width, std::size_t height, CUstream stream);

}  // namespace torpor::shim
