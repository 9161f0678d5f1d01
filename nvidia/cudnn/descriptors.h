#pragma once

#include <cudnn.h>

#include <array>
#include <cstdint>

// The descriptors of cuDNN's legacy API as plain values: the objects behind a program's
// descriptors. The replacement library sends them by value inside the calls that use them; the
// emulated library reads them.
namespace torpor {

inline constexpr int kDnnMaxDims = CUDNN_DIM_MAX;
using DnnDims = std::array<std::int32_t, kDnnMaxDims>;

// A tensor of `rank` dimensions; strides in elements.
struct DnnTensor {
  std::int32_t type = CUDNN_DATA_FLOAT;
  std::int32_t rank = 0;  // 0: not set yet
  DnnDims dims{};
  DnnDims strides{};

  template <typename V>
  void Visit(V& v) {
    v(type), v(rank), v(dims), v(strides);
  }
};

// A dense filter: dimensions are outputs, inputs, then the window.
struct DnnFilter {
  std::int32_t type = CUDNN_DATA_FLOAT;
  std::int32_t format = CUDNN_TENSOR_NCHW;
  std::int32_t rank = 0;
  DnnDims dims{};

  template <typename V>
  void Visit(V& v) {
    v(type), v(format), v(rank), v(dims);
  }
};

// A convolution; arrays have an element for each dimension of the window.
struct DnnConvolution {
  std::int32_t rank = 0;  // of the window
  DnnDims padding{};
  DnnDims strides{};
  DnnDims dilation{};
  std::int32_t mode = CUDNN_CROSS_CORRELATION;
  std::int32_t compute_type = CUDNN_DATA_FLOAT;
  std::int32_t math_type = CUDNN_DEFAULT_MATH;
  std::int32_t groups = 1;
  std::int32_t reorder = CUDNN_DEFAULT_REORDER;

  template <typename V>
  void Visit(V& v) {
    v(rank), v(padding), v(strides), v(dilation), v(mode), v(compute_type), v(math_type);
    v(groups), v(reorder);
  }
};

// A pooling; arrays have an element for each dimension of the window.
struct DnnPooling {
  std::int32_t mode = CUDNN_POOLING_MAX;
  std::int32_t nan = CUDNN_NOT_PROPAGATE_NAN;
  std::int32_t rank = 0;  // of the window
  DnnDims window{};
  DnnDims padding{};
  DnnDims strides{};

  template <typename V>
  void Visit(V& v) {
    v(mode), v(nan), v(rank), v(window), v(padding), v(strides);
  }
};

// An activation function; `coefficient` bounds CLIPPED_RELU or scales ELU.
struct DnnActivation {
  std::int32_t mode = CUDNN_ACTIVATION_IDENTITY;
  std::int32_t nan = CUDNN_NOT_PROPAGATE_NAN;
  double coefficient = 0;
  double swish_beta = 1;

  template <typename V>
  void Visit(V& v) {
    v(mode), v(nan), v(coefficient), v(swish_beta);
  }
};

// An operation on two tensors, element by element.
struct DnnOpTensor {
  std::int32_t operation = CUDNN_OP_TENSOR_ADD;
  std::int32_t compute_type = CUDNN_DATA_FLOAT;
  std::int32_t nan = CUDNN_NOT_PROPAGATE_NAN;

  template <typename V>
  void Visit(V& v) {
    v(operation), v(compute_type), v(nan);
  }
};

// A reduction over the dimensions in which the result has size 1.
struct DnnReduceTensor {
  std::int32_t operation = CUDNN_REDUCE_TENSOR_ADD;
  std::int32_t compute_type = CUDNN_DATA_FLOAT;
  std::int32_t nan = CUDNN_NOT_PROPAGATE_NAN;
  std::int32_t indices = CUDNN_REDUCE_TENSOR_NO_INDICES;
  std::int32_t indices_type = CUDNN_32BIT_INDICES;

  template <typename V>
  void Visit(V& v) {
    v(operation), v(compute_type), v(nan), v(indices), v(indices_type);
  }
};

// Local response normalisation across `size` channels.
struct DnnLrn {
  std::uint32_t size = 5;
  double alpha = 1e-4;
  double beta = 0.75;
  double k = 2;

  template <typename V>
  void Visit(V& v) {
    v(size), v(alpha), v(beta), v(k);
  }
};

// Bytes of an element; 0 for unknown types, and for types with several elements in a byte.
constexpr std::uint64_t DnnTypeBytes(std::int32_t type) {
  switch (type) {
    case CUDNN_DATA_DOUBLE:
    case CUDNN_DATA_INT64:
    case CUDNN_DATA_COMPLEX_FP32:
      return 8;
    case CUDNN_DATA_FLOAT:
    case CUDNN_DATA_INT32:
    case CUDNN_DATA_UINT32:
      return 4;
    case CUDNN_DATA_HALF:
    case CUDNN_DATA_BFLOAT16:
      return 2;
    case CUDNN_DATA_INT8:
    case CUDNN_DATA_UINT8:
    case CUDNN_DATA_BOOLEAN:
    case CUDNN_DATA_FP8_E4M3:
    case CUDNN_DATA_FP8_E5M2:
      return 1;
    default:
      return 0;
  }
}

}  // namespace torpor

// The objects behind the pointers of the C interface.
struct cudnnTensorStruct : torpor::DnnTensor {};
struct cudnnFilterStruct : torpor::DnnFilter {};
struct cudnnConvolutionStruct : torpor::DnnConvolution {};
struct cudnnPoolingStruct : torpor::DnnPooling {};
struct cudnnActivationStruct : torpor::DnnActivation {};
struct cudnnOpTensorStruct : torpor::DnnOpTensor {};
struct cudnnReduceTensorStruct : torpor::DnnReduceTensor {};
struct cudnnLRNStruct : torpor::DnnLrn {};
