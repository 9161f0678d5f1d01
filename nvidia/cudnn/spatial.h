#pragma once

#include <cudnn.h>

#include <array>
#include <cstdint>

#include "nvidia/cudnn/descriptors.h"
#include "nvidia/cudnn/shapes.h"

// cuDNN's spatial transformer as a plain value (descriptors.h), and derived tensors. Safe for
// arbitrary values.
namespace torpor {

inline constexpr int kDnnTransformedRank = 4;

// The shape of the output: samples, channels, rows and columns.
struct DnnSpatialTransformer {
  std::int32_t sampler = CUDNN_SAMPLER_BILINEAR;
  std::int32_t type = CUDNN_DATA_FLOAT;
  std::array<std::int32_t, kDnnTransformedRank> dims{};  // zeros: not set yet

  template <typename V>
  void Visit(V& v) {
    v(sampler), v(type), v(dims);
  }
};

// The grid: for each output pixel, the position in the source, x and y from -1 to 1. Samples x rows
// x columns x 2, dense.
constexpr DnnTensor DnnGrid(const DnnSpatialTransformer& t) {
  return DnnDense(t.type, CUDNN_TENSOR_NCHW, 4, {t.dims[0], t.dims[2], t.dims[3], 2});
}
// The affine maps from which a grid is generated, samples x 2 x 3, dense.
constexpr DnnTensor DnnTheta(const DnnSpatialTransformer& t) {
  return DnnDense(t.type, CUDNN_TENSOR_NCHW, 3, {t.dims[0], 2, 3});
}

constexpr bool DnnIsValid(const DnnSpatialTransformer& t) {
  for (const std::int32_t dim : t.dims) {
    if (dim < 1) return false;
  }
  return t.sampler == CUDNN_SAMPLER_BILINEAR && DnnIsValid(DnnGrid(t));
}

}  // namespace torpor

// The object behind the pointer of the C interface.
struct cudnnSpatialTransformerStruct : torpor::DnnSpatialTransformer {};
