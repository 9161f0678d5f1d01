#pragma once

#include <cuda.h>

#include "emulator/driver/api.h"

namespace torpor::emulator {

// A copy of linear memory: `depth` slices of `height` rows of `width` bytes.
struct CopyRequest {
  CopyEnd to;
  CopyEnd from;
  Bytes width = 0;
  Bytes height = 1;
  Bytes depth = 1;
  Bytes to_pitch = 0;
  Bytes from_pitch = 0;
  Bytes to_slice = 0;  // bytes from one slice to the next
  Bytes from_slice = 0;

  Bytes bytes() const { return width * height * depth; }
};

struct FillRequest {
  std::uint64_t address = 0;
  std::uint32_t value = 0;
  Bytes unit = 1;   // bytes of `value` that count
  Bytes width = 0;  // in units
  Bytes height = 1;
  Bytes pitch = 0;
};

// Returns when the copy is done.
CUresult CopyNow(const StreamTarget& target, const CopyRequest& request);
// In stream order. As CUDA's copies do, one to or from pageable memory leaves the caller's buffer
// alone after it returns.
CUresult CopyInStream(const StreamTarget& target, const CopyRequest& request);

CUresult FillNow(const StreamTarget& target, const FillRequest& request);
CUresult FillInStream(const StreamTarget& target, const FillRequest& request);

// The request of a 2D or 3D copy; CUDA_ERROR_NOT_SUPPORTED if an end is an array.
CUresult ToRequest(const CUDA_MEMCPY2D& copy, CopyRequest& request);
CUresult ToRequest(const CUDA_MEMCPY3D& copy, CopyRequest& request);

}  // namespace torpor::emulator
