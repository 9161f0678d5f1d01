#pragma once

#include <cstddef>
#include <cstdint>

#include "nvidia/cudnn/descriptors.h"

// Validity of descriptors, and shapes derived from them. Safe for arbitrary values: results that do
// not fit are 0 or kDnnEndless.
namespace torpor {

inline constexpr std::uint64_t kDnnEndless = ~std::uint64_t{0};

// Saturating arithmetic.
constexpr std::uint64_t DnnTimes(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? kDnnEndless : product;
}
constexpr std::uint64_t DnnPlus(std::uint64_t a, std::uint64_t b) {
  std::uint64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? kDnnEndless : sum;
}

constexpr bool DnnRankIsValid(std::int32_t rank) { return rank >= 1 && rank <= kDnnMaxDims; }

// The number of dimensions of a descriptor; 0 if the rank is invalid.
constexpr std::size_t DnnDimensions(std::int32_t rank) {
  return DnnRankIsValid(rank) ? static_cast<std::size_t>(rank) : 0;
}

// DnnIsValid checks a descriptor by itself, as the setters of cuDNN do; DnnBytes computes its
// extent.
constexpr bool DnnIsValid(const DnnTensor& x) {
  if (DnnTypeBytes(x.type) == 0 || !DnnRankIsValid(x.rank)) return false;
  for (std::size_t i = 0; i < DnnDimensions(x.rank); ++i) {
    if (x.dims[i] < 1 || x.strides[i] < 0) return false;
  }
  return true;
}

// Bytes from the first element to the end of the last.
constexpr std::uint64_t DnnBytes(const DnnTensor& x) {
  std::uint64_t last = 0;
  for (std::size_t i = 0; i < DnnDimensions(x.rank); ++i) {
    last = DnnPlus(last, DnnTimes(static_cast<std::uint64_t>(x.dims[i] - 1),
                                  static_cast<std::uint64_t>(x.strides[i])));
  }
  return DnnTimes(DnnPlus(last, 1), DnnTypeBytes(x.type));
}

constexpr bool DnnIsValid(const DnnFilter& w) {
  if (DnnTypeBytes(w.type) == 0 || !DnnRankIsValid(w.rank) || w.rank < 3) return false;
  for (std::size_t i = 0; i < DnnDimensions(w.rank); ++i) {
    if (w.dims[i] < 1) return false;
  }
  return w.format == CUDNN_TENSOR_NCHW || w.format == CUDNN_TENSOR_NHWC;
}

// Bytes of a filter, dense.
constexpr std::uint64_t DnnBytes(const DnnFilter& w) {
  std::uint64_t bytes = DnnTypeBytes(w.type);
  for (std::size_t i = 0; i < DnnDimensions(w.rank); ++i)
    bytes = DnnTimes(bytes, static_cast<std::uint64_t>(w.dims[i]));
  return bytes;
}

// Whether `rank` is a legal rank of a window: a tensor's without the first two dimensions.
constexpr bool DnnWindowIsValid(std::int32_t rank) { return rank >= 1 && rank <= kDnnMaxDims - 2; }

constexpr bool DnnIsValid(const DnnConvolution& c) {
  if (!DnnWindowIsValid(c.rank) || c.groups < 1 || DnnTypeBytes(c.compute_type) == 0) return false;
  for (std::size_t i = 0; i < DnnDimensions(c.rank); ++i) {
    if (c.padding[i] < 0 || c.strides[i] < 1 || c.dilation[i] < 1) return false;
  }
  return (c.mode == CUDNN_CONVOLUTION || c.mode == CUDNN_CROSS_CORRELATION) && c.math_type >= 0 &&
         c.math_type <= CUDNN_FMA_MATH && c.reorder >= 0 && c.reorder <= CUDNN_NO_REORDER;
}

constexpr bool DnnIsValid(const DnnPooling& p) {
  if (!DnnWindowIsValid(p.rank)) return false;
  for (std::size_t i = 0; i < DnnDimensions(p.rank); ++i) {
    if (p.window[i] < 1 || p.padding[i] < 0 || p.strides[i] < 1) return false;
  }
  return p.mode >= CUDNN_POOLING_MAX && p.mode <= CUDNN_POOLING_MAX_DETERMINISTIC && p.nan >= 0 &&
         p.nan <= 1;
}

constexpr bool DnnIsValid(const DnnActivation& a) {
  return a.mode >= CUDNN_ACTIVATION_SIGMOID && a.mode <= CUDNN_ACTIVATION_SWISH && a.nan >= 0 &&
         a.nan <= 1;
}
constexpr bool DnnIsValid(const DnnOpTensor& o) {
  return o.operation >= CUDNN_OP_TENSOR_ADD && o.operation <= CUDNN_OP_TENSOR_NOT && o.nan >= 0 &&
         o.nan <= 1 && DnnTypeBytes(o.compute_type) > 0;
}
constexpr bool DnnIsValid(const DnnReduceTensor& r) {
  return r.operation >= CUDNN_REDUCE_TENSOR_ADD &&
         r.operation <= CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS && r.nan >= 0 && r.nan <= 1 &&
         r.indices >= 0 && r.indices <= 1 && r.indices_type >= 0 && r.indices_type <= 3 &&
         DnnTypeBytes(r.compute_type) > 0;
}
constexpr bool DnnIsValid(const DnnLrn& n) {
  return n.size >= CUDNN_LRN_MIN_N && n.size <= CUDNN_LRN_MAX_N;
}

// Returns a dense tensor in the order of `format`. A stride that does not fit 32 bits becomes -1,
// which makes the tensor invalid.
constexpr DnnTensor DnnDense(std::int32_t type, std::int32_t format, std::int32_t rank,
                             const DnnDims& dims) {
  DnnTensor x{.type = type, .rank = rank, .dims = dims};
  std::int64_t stride = 1;
  const auto take = [&](std::size_t i) {
    x.strides[i] = stride > INT32_MAX ? -1 : static_cast<std::int32_t>(stride);
    if (stride <= INT32_MAX) stride *= dims[i];
  };
  const bool channels_last = format == CUDNN_TENSOR_NHWC && rank > 2;
  if (channels_last) take(1);
  for (std::size_t i = DnnDimensions(rank); i-- > 0;) {
    if (!channels_last || i != 1) take(i);
  }
  return x;
}

// Compute the dimensions of a convolution's or pooling's result. Return false if the arguments do
// not fit each other.
constexpr bool DnnOutputDims(const DnnConvolution& c, const DnnTensor& x, const DnnFilter& w,
                             DnnDims& dims) {
  if (!DnnIsValid(c) || !DnnIsValid(x) || !DnnIsValid(w) || x.rank != c.rank + 2 ||
      w.rank != x.rank || std::int64_t{w.dims[1]} * c.groups != x.dims[1] ||
      w.dims[0] % c.groups != 0) {
    return false;
  }
  dims[0] = x.dims[0];
  dims[1] = w.dims[0];
  for (std::size_t i = 0; i < DnnDimensions(c.rank); ++i) {
    const std::int64_t window = (std::int64_t{w.dims[i + 2]} - 1) * c.dilation[i] + 1;
    const std::int64_t room = std::int64_t{x.dims[i + 2]} + 2 * std::int64_t{c.padding[i]} - window;
    if (room < 0) return false;
    dims[i + 2] = static_cast<std::int32_t>(room / c.strides[i] + 1);
  }
  return true;
}

constexpr bool DnnOutputDims(const DnnPooling& p, const DnnTensor& x, DnnDims& dims) {
  if (!DnnIsValid(p) || !DnnIsValid(x) || x.rank != p.rank + 2) return false;
  dims[0] = x.dims[0];
  dims[1] = x.dims[1];
  for (std::size_t i = 0; i < DnnDimensions(p.rank); ++i) {
    const std::int64_t room =
        std::int64_t{x.dims[i + 2]} + 2 * std::int64_t{p.padding[i]} - p.window[i];
    if (room < 0) return false;
    dims[i + 2] = static_cast<std::int32_t>(room / p.strides[i] + 1);
  }
  return true;
}

// Bytes of a scaling factor, alpha or beta, in calls on tensors of `type`.
constexpr std::uint64_t DnnScalarBytes(std::int32_t type) {
  return type == CUDNN_DATA_DOUBLE ? sizeof(double) : sizeof(float);
}

}  // namespace torpor
