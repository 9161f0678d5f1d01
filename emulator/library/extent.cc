#include "emulator/library/extent.h"

namespace torpor::emulator {
namespace {

// Saturates at UINT64_MAX, a size that is accessible nowhere.
std::uint64_t Times(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}
std::uint64_t Plus(std::uint64_t a, std::uint64_t b) {
  std::uint64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

// The absolute value; correct for INT64_MIN, too.
std::uint64_t Magnitude(std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value);
  return value < 0 ? 0 - bits : bits;
}

}  // namespace

AccessExtent VectorExtent(const void* address, std::int64_t count, std::int64_t stride,
                          std::size_t element_bytes, bool written) {
  if (count <= 0) return {};
  const std::uint64_t reach = Times(static_cast<std::uint64_t>(count - 1), Magnitude(stride));
  return {address, Times(Plus(reach, 1), element_bytes), written};
}

AccessExtent MatrixExtent(const void* address, std::int64_t rows, std::int64_t columns,
                          std::int64_t leading, std::size_t element_bytes, bool written,
                          std::int64_t batch_stride, std::int64_t count) {
  if (rows <= 0 || columns <= 0 || count <= 0) return {};
  const std::uint64_t one = Plus(Times(static_cast<std::uint64_t>(columns - 1), Magnitude(leading)),
                                 static_cast<std::uint64_t>(rows));
  const std::uint64_t reach =
      Times(Times(static_cast<std::uint64_t>(count - 1), Magnitude(batch_stride)), element_bytes);
  std::uint64_t lowest = reinterpret_cast<std::uint64_t>(address);
  if (batch_stride < 0) lowest -= reach;  // the last matrix lies lowest
  return {reinterpret_cast<const void*>(lowest), Plus(Times(one, element_bytes), reach), written};
}

}  // namespace torpor::emulator
