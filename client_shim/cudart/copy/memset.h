#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "client_shim/cudart/graph/node_work.h"

namespace torpor::shim {

// cudaErrorInvalidValue for a fill, of at least one element, whose rows overlap, whose elements are
// not aligned, or which does not lie in one allocation that a device sees. `span`: bytes from its
// begin to the end of its last row.
cudaError_t CheckFill(const cudaMemsetParams& fill, std::uint64_t& span);

// Sets `count` elements of 1, 2 or 4 bytes, to which `to` is aligned.
cudaError_t SetElements(void* to, std::uint32_t value, std::uint32_t element_bytes,
                        std::uint64_t count, cudaStream_t stream);

// `width` in elements of 1, 2 or 4 bytes.
FillWork FillRows(void* to, std::uint64_t pitch, std::uint32_t value, std::uint32_t element_bytes,
                  std::uint64_t width, std::uint64_t height);

}  // namespace torpor::shim
