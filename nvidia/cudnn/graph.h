#pragma once

#include <cudnn.h>

#include <cfloat>
#include <cstdint>
#include <vector>

#include "nvidia/cudnn/descriptors.h"

// Operation graphs of cuDNN's backend API as plain values, sent inside the calls that ask about a
// graph or execute it.
namespace torpor {

// A tensor of a graph.
struct DnnGraphTensor {
  DnnTensor shape;
  std::int64_t id = 0;           // the program's name of it
  std::int64_t alignment = 1;    // of its address, in bytes
  std::uint32_t is_virtual = 0;  // passed from operation to operation, nowhere in memory

  template <typename V>
  void Visit(V& v) {
    v(shape), v(id), v(alignment), v(is_virtual);
  }
};

// A convolution. Unlike in the legacy API, the padding may differ between the sides. The number of
// groups is the tensor's channels divided by the filter's inputs.
struct DnnGraphConvolution {
  std::int32_t rank = 0;  // of the window
  DnnDims before{};       // padding
  DnnDims after{};
  DnnDims strides{};
  DnnDims dilation{};
  std::int32_t mode = CUDNN_CROSS_CORRELATION;
  std::int32_t compute_type = CUDNN_DATA_FLOAT;

  template <typename V>
  void Visit(V& v) {
    v(rank), v(before), v(after), v(strides), v(dilation), v(mode), v(compute_type);
  }
};

// A function applied to each element.
struct DnnPointwise {
  std::int32_t mode = CUDNN_POINTWISE_IDENTITY;
  std::int32_t compute_type = CUDNN_DATA_FLOAT;
  std::int32_t nan = CUDNN_NOT_PROPAGATE_NAN;
  double lower_clip = 0;
  double upper_clip = DBL_MAX;
  double lower_clip_slope = 0;
  double elu_alpha = 1;
  double softplus_beta = 1;
  double swish_beta = 1;

  template <typename V>
  void Visit(V& v) {
    v(mode), v(compute_type), v(nan), v(lower_clip), v(upper_clip), v(lower_clip_slope);
    v(elu_alpha), v(softplus_beta), v(swish_beta);
  }
};

inline constexpr std::uint32_t kDnnNoTensor = UINT32_MAX;

// One operation, by the kind of its descriptor.
//   CUDNN_BACKEND_OPERATION_CONVOLUTION_*: computes y from x and w, or the gradient of x from y and
//     w, or the gradient of w from y and x: alpha * result + beta * old value
//   CUDNN_BACKEND_OPERATION_POINTWISE: computes y from alpha * x and, for two operands, beta * w
struct DnnGraphOperation {
  std::int32_t kind = CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR;
  std::uint32_t x = kDnnNoTensor;  // places among the graph's tensors
  std::uint32_t w = kDnnNoTensor;
  std::uint32_t y = kDnnNoTensor;
  DnnGraphConvolution convolution;
  DnnPointwise pointwise;
  double alpha = 1;
  double beta = 0;
  std::int32_t scalar_type = CUDNN_TYPE_FLOAT;  // in which alpha and beta are given

  template <typename V>
  void Visit(V& v) {
    v(kind), v(x), v(w), v(y), v(convolution), v(pointwise), v(alpha), v(beta), v(scalar_type);
  }
};

// Operations in an order in which they can be executed.
struct DnnGraph {
  std::vector<DnnGraphTensor> tensors{};
  std::vector<DnnGraphOperation> operations{};

  template <typename V>
  void Visit(V& v) {
    v(tensors), v(operations);
  }
};

// A setting of an engine.
struct DnnKnob {
  std::int32_t type = 0;
  std::int64_t value = 0;

  template <typename V>
  void Visit(V& v) {
    v(type), v(value);
  }
};

// An engine of the library, with its settings.
struct DnnEngineConfig {
  std::int64_t engine = 0;
  std::vector<DnnKnob> knobs{};

  template <typename V>
  void Visit(V& v) {
    v(engine), v(knobs);
  }
};

// The legal values of a knob, bounds included.
struct DnnKnobRange {
  std::int32_t type = 0;
  std::int64_t min = 0;
  std::int64_t max = 0;
  std::int64_t step = 1;

  template <typename V>
  void Visit(V& v) {
    v(type), v(min), v(max), v(step);
  }
};

// The library's description of an engine for a graph.
struct DnnEngine {
  std::int64_t engine = 0;
  std::vector<std::int32_t> numerical_notes{};
  std::vector<std::int32_t> behavior_notes{};
  std::vector<DnnKnobRange> knobs{};

  template <typename V>
  void Visit(V& v) {
    v(engine), v(numerical_notes), v(behavior_notes), v(knobs);
  }
};

// A recommended engine with recommended settings.
struct DnnEngineChoice {
  DnnEngine engine;
  std::vector<DnnKnob> knobs{};

  template <typename V>
  void Visit(V& v) {
    v(engine), v(knobs);
  }
};

}  // namespace torpor
