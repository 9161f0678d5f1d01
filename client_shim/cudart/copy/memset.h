#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "client_shim/cudart/graph/node_work.h"

namespace torpor::shim {

// Checks a fill of at least one element and stores the bytes from the begin to the end of the last
// row in `span`. cudaErrorInvalidValue if rows overlap, elements are unaligned, or the fill does
// not lie in one allocation visible to a device.
cudaError_t CheckFill(const cudaMemsetParams& fill, std::uint64_t& span);

// Captures or sends a fill of `count` elements of 1, 2 or 4 bytes; `to` is aligned accordingly.
cudaError_t SetElements(void* to, std::uint32_t value, std::uint32_t element_bytes,
                        std::uint64_t count, cudaStream_t stream);

// The work of a fill node, unchecked. `width` in elements of 1, 2 or 4 bytes, `pitch` in bytes.
FillWork FillRows(void* to, std::uint64_t pitch, std::uint32_t value, std::uint32_t element_bytes,
                  std::uint64_t width, std::uint64_t height);

}  // namespace torpor::shim
