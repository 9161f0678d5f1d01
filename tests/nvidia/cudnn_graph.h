#pragma once

#include "nvidia/cudnn/graph.h"
#include "nvidia/cudnn/shapes.h"

namespace torpor {

// y = relu(x * w + bias), of which the product and the sum are virtual.
inline DnnGraph FusedGraph() {
  const auto tensor = [](std::int64_t id, const DnnDims& dims, bool is_virtual = false) {
    return DnnGraphTensor{.shape = DnnDense(CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 4, dims),
                          .id = id,
                          .alignment = 16,
                          .is_virtual = is_virtual ? 1u : 0u};
  };
  const auto pointwise = [](cudnnPointwiseMode_t mode, std::uint32_t x, std::uint32_t b,
                            std::uint32_t y) {
    return DnnGraphOperation{.kind = CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
                             .x = x,
                             .w = b,
                             .y = y,
                             .convolution = {},
                             .pointwise = {.mode = mode},
                             .beta = 1};
  };
  DnnGraph graph;
  graph.tensors = {tensor('x', {2, 4, 6, 5}),       tensor('w', {8, 2, 3, 3}),
                   tensor('C', {2, 8, 6, 5}, true), tensor('b', {1, 8, 1, 1}),
                   tensor('B', {2, 8, 6, 5}, true), tensor('y', {2, 8, 6, 5})};
  DnnGraphOperation convolve;
  convolve.kind = CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR;
  convolve.x = 0;
  convolve.w = 1;
  convolve.y = 2;
  convolve.convolution = {
      .rank = 2, .before = {1, 1}, .after = {1, 1}, .strides = {1, 1}, .dilation = {1, 1}};
  graph.operations = {convolve, pointwise(CUDNN_POINTWISE_ADD, 2, 3, 4),
                      pointwise(CUDNN_POINTWISE_RELU_FWD, 4, kDnnNoTensor, 5)};
  return graph;
}

}  // namespace torpor
