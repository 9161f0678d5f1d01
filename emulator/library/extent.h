#pragma once

#include <cstddef>
#include <cstdint>

namespace torpor::emulator {

// A range that a call is going to touch; empty ranges are always legal. One that reaches beyond
// what 64 bits address has UINT64_MAX bytes, or wraps, and is never accessible.
struct Extent {
  const void* address = nullptr;
  std::uint64_t bytes = 0;
  bool written = false;
};

// A vector of `count` elements `stride` apart, which may be negative, as BLAS stores it: `address`
// is its lowest element.
Extent VectorExtent(const void* address, std::int64_t count, std::int64_t stride,
                    std::size_t element_bytes, bool written);
// A column-major matrix, `count` times with `batch_stride` elements between the beginnings.
Extent MatrixExtent(const void* address, std::int64_t rows, std::int64_t columns,
                    std::int64_t leading, std::size_t element_bytes, bool written,
                    std::int64_t batch_stride = 0, std::int64_t count = 1);

}  // namespace torpor::emulator
