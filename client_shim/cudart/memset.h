#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace torpor::shim {

// Sets `count` elements of 1, 2 or 4 bytes, to which `to` is aligned.
cudaError_t SetElements(void* to, std::uint32_t value, std::uint32_t element_bytes,
                        std::uint64_t count, cudaStream_t stream);

}  // namespace torpor::shim
