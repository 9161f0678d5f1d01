#include "emulator/ptx/lane_shape.h"

#include <algorithm>
#include <bit>

namespace torpor::ptx {
namespace {

// Wrapping addition: strides may overflow.
std::int64_t Add(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

}  // namespace

unsigned Alignment(std::uint64_t value) {
  return value == 0 ? kMaxAlignment
                    : std::min(kMaxAlignment, static_cast<unsigned>(std::countr_zero(value)));
}

// Strides are kept as signed values of the operation's width.
std::int64_t Wrap(std::int64_t value, unsigned bits) {
  if (bits == 0 || bits >= 64) return value;
  const unsigned shift = 64 - bits;
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(value) << shift) >> shift;
}

std::int64_t Multiply(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}

LaneShape Scaled(const LaneShape& shape, std::int64_t factor, unsigned bits, unsigned alignment) {
  if (shape.rows()) return LaneShape::Rows(Wrap(Multiply(shape.stride, factor), bits));
  return LaneShape::Linear(Wrap(Multiply(shape.stride, factor), bits),
                           Wrap(Multiply(shape.row_stride, factor), bits), alignment);
}

LaneShape Sum(const LaneShape& a, const LaneShape& b, std::int64_t sign, unsigned bits) {
  const std::int64_t stride = Wrap(Add(a.stride, Multiply(sign, b.stride)), bits);
  if (a.rows() || b.rows()) return LaneShape::Rows(stride);
  return LaneShape::Linear(stride, Wrap(Add(a.row_stride, Multiply(sign, b.row_stride)), bits),
                           std::min(a.alignment, b.alignment));
}

}  // namespace torpor::ptx
