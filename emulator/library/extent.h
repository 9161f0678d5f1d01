#pragma once

#include <cstddef>
#include <cstdint>

namespace torpor::emulator {

// A range of memory that a call will touch. Empty ranges are always legal. A range beyond 64 bits
// has UINT64_MAX bytes, or wraps, and is never accessible.
struct AccessExtent {
  const void* address = nullptr;
  std::uint64_t bytes = 0;
  bool written = false;
};

// A vector of `count` elements, `stride` elements apart. As BLAS stores vectors, `address` is the
// lowest element even if `stride` is negative.
AccessExtent VectorExtent(const void* address, std::int64_t count, std::int64_t stride,
                          std::size_t element_bytes, bool written);
// A column-major matrix, `count` times with `batch_stride` elements from one to the next.
AccessExtent MatrixExtent(const void* address, std::int64_t rows, std::int64_t columns,
                          std::int64_t leading, std::size_t element_bytes, bool written,
                          std::int64_t batch_stride = 0, std::int64_t count = 1);

}  // namespace torpor::emulator
