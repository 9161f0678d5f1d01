#pragma once

#include <algorithm>
#include <cmath>

#include "nvidia/cudnn/graph.h"

// The functions of cudnnPointwiseMode_t, for float and double.
namespace torpor::emulator {

// ReLU with bounds and a slope below the lower bound.
template <typename T>
T ClippedRelu(const DnnPointwise& p, T x) {
  const auto lower = static_cast<T>(p.lower_clip);
  const auto upper = static_cast<T>(p.upper_clip);
  // NaN stays NaN in either mode: comparisons with it are false.
  if (x < lower) return lower + static_cast<T>(p.lower_clip_slope) * (x - lower);
  return x > upper ? upper : x;
}

// Whether Pointwise implements `mode`. Graphs with other modes are not supported.
constexpr bool HasPointwise(std::int32_t mode) {
  switch (mode) {
    case CUDNN_POINTWISE_ADD:
    case CUDNN_POINTWISE_DIV:
    case CUDNN_POINTWISE_MAX:
    case CUDNN_POINTWISE_MIN:
    case CUDNN_POINTWISE_MUL:
    case CUDNN_POINTWISE_SUB:
    case CUDNN_POINTWISE_ABS:
    case CUDNN_POINTWISE_EXP:
    case CUDNN_POINTWISE_NEG:
    case CUDNN_POINTWISE_SQRT:
    case CUDNN_POINTWISE_RSQRT:
    case CUDNN_POINTWISE_IDENTITY:
    case CUDNN_POINTWISE_RELU_FWD:
    case CUDNN_POINTWISE_TANH_FWD:
    case CUDNN_POINTWISE_SIGMOID_FWD:
    case CUDNN_POINTWISE_ELU_FWD:
    case CUDNN_POINTWISE_GELU_FWD:
    case CUDNN_POINTWISE_SOFTPLUS_FWD:
    case CUDNN_POINTWISE_SWISH_FWD:
      return true;
    default:
      return false;
  }
}

// Applies the function to `x` and `b`; functions of one operand ignore `b`.
template <typename T>
T Pointwise(const DnnPointwise& p, T x, T b) {
  switch (p.mode) {
    case CUDNN_POINTWISE_ADD:
      return x + b;
    case CUDNN_POINTWISE_DIV:
      return x / b;
    case CUDNN_POINTWISE_MAX:
      return std::max(x, b);
    case CUDNN_POINTWISE_MIN:
      return std::min(x, b);
    case CUDNN_POINTWISE_MUL:
      return x * b;
    case CUDNN_POINTWISE_SUB:
      return x - b;
    case CUDNN_POINTWISE_ABS:
      return std::abs(x);
    case CUDNN_POINTWISE_EXP:
      return std::exp(x);
    case CUDNN_POINTWISE_NEG:
      return -x;
    case CUDNN_POINTWISE_SQRT:
      return std::sqrt(x);
    case CUDNN_POINTWISE_RSQRT:
      return 1 / std::sqrt(x);
    case CUDNN_POINTWISE_RELU_FWD:
      return ClippedRelu(p, x);
    case CUDNN_POINTWISE_TANH_FWD:
      return std::tanh(x);
    case CUDNN_POINTWISE_SIGMOID_FWD:
      return 1 / (1 + std::exp(-x));
    case CUDNN_POINTWISE_ELU_FWD:
      return x < 0 ? static_cast<T>(p.elu_alpha) * std::expm1(x) : x;
    case CUDNN_POINTWISE_GELU_FWD:
      return x * (1 + std::erf(x * static_cast<T>(M_SQRT1_2))) / 2;
    case CUDNN_POINTWISE_SOFTPLUS_FWD: {
      const auto beta = static_cast<T>(p.softplus_beta);
      return std::max(x, T(0)) + std::log1p(std::exp(-std::abs(beta * x))) / beta;
    }
    case CUDNN_POINTWISE_SWISH_FWD:
      return x / (1 + std::exp(-static_cast<T>(p.swish_beta) * x));
    default:
      return x;
  }
}

}  // namespace torpor::emulator
