#pragma once

#include <cstdint>

namespace torpor::ptx {

// How a value differs across the 32 lanes of a warp.
struct LaneShape {
  enum class Kind : std::uint8_t {
    kUnknown,  // not computed yet: the analysis is optimistic
    kLinear,   // lane l holds base + (l % w) * stride + (l / w) * row_stride; see BlockShape
    kRows,     // lane l holds bases[l / w] + (l % w) * stride
    kVarying,
  };
  Kind kind = Kind::kUnknown;
  std::int64_t stride = 0;
  std::int64_t row_stride = 0;  // 0 where a row is a whole warp
  // Lane 0's value is a multiple of 2^alignment, a proof that arithmetic in a wider type agrees.
  unsigned alignment = 0;
  // For varying lanes: the lanes agree in all bits above the lowest `low_bits`.
  unsigned low_bits = kAllBits;

  static constexpr unsigned kAllBits = 64;

  bool linear() const { return kind == Kind::kLinear; }
  bool uniform() const { return linear() && stride == 0 && row_stride == 0; }
  bool rows() const { return kind == Kind::kRows; }
  bool stepped() const { return linear() || rows(); }
  bool row_uniform() const { return stepped() && stride == 0; }
  bool varying() const { return kind == Kind::kVarying; }

  static LaneShape Uniform(unsigned alignment = 0) { return Linear(0, 0, alignment); }
  static LaneShape Linear(std::int64_t stride, std::int64_t row_stride, unsigned alignment) {
    return {Kind::kLinear, stride, row_stride, alignment, kAllBits};
  }
  static LaneShape Rows(std::int64_t stride) { return {Kind::kRows, stride, 0, 0, kAllBits}; }
  static LaneShape Varying(unsigned low_bits = kAllBits) {
    return {Kind::kVarying, 0, 0, 0, low_bits};
  }
};

// Facts about the blocks for which a variant of a kernel is compiled.
struct BlockShape {
  // %tid.x counts up from lane to lane in rows of this many lanes (a power of two), %tid.y from row
  // to row, and %tid.z is uniform. 32: a warp lies in one row. 0: unknown.
  unsigned row_lanes = 0;
  // %ntid.x is a multiple of 32 (implies row_lanes 32).
  bool whole_rows = false;
  // All warps have 32 threads.
  bool whole_warps = false;

  unsigned row_width() const { return row_lanes == 0 ? 32 : row_lanes; }
};

// The number of low zero bits of `value`, at most kMaxAlignment, the alignment of 0.
constexpr unsigned kMaxAlignment = 32;
unsigned Alignment(std::uint64_t value);

// Strides are signed values that wrap at the operation's width, in bits.
std::int64_t Wrap(std::int64_t value, unsigned bits);
std::int64_t Multiply(std::int64_t a, std::int64_t b);

// The shape of shape * factor, with the given alignment, and the shape of a + sign * b.
LaneShape Scaled(const LaneShape& shape, std::int64_t factor, unsigned bits, unsigned alignment);
LaneShape Sum(const LaneShape& a, const LaneShape& b, std::int64_t sign, unsigned bits);

}  // namespace torpor::ptx
