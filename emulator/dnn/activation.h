#pragma once

#include <algorithm>
#include <cmath>

#include "nvidia/cudnn/descriptors.h"

// The functions of cudnnActivationMode_t and their derivatives, for float and double.
namespace torpor::emulator {

// The logistic function.
template <typename T>
T Sigmoid(T x) {
  return 1 / (1 + std::exp(-x));
}

// NaN stays NaN in either NaN mode, since comparisons with NaN are false.
template <typename T>
T Activate(const DnnActivation& a, T x) {
  const auto coefficient = static_cast<T>(a.coefficient);
  const auto beta = static_cast<T>(a.swish_beta);
  switch (a.mode) {
    case CUDNN_ACTIVATION_SIGMOID:
      return Sigmoid(x);
    case CUDNN_ACTIVATION_RELU:
      return x < 0 ? T(0) : x;
    case CUDNN_ACTIVATION_TANH:
      return std::tanh(x);
    case CUDNN_ACTIVATION_CLIPPED_RELU:
      return x < 0 ? T(0) : (x > coefficient ? coefficient : x);
    case CUDNN_ACTIVATION_ELU:
      return x < 0 ? coefficient * std::expm1(x) : x;
    case CUDNN_ACTIVATION_SWISH:
      return x * Sigmoid(beta * x);
    default:
      return x;
  }
}

// Returns the derivative at input `x`, given the output `y` = Activate(a, x). Some functions need
// only `y`.
template <typename T>
T ActivationSlope(const DnnActivation& a, T x, T y) {
  const auto coefficient = static_cast<T>(a.coefficient);
  const auto beta = static_cast<T>(a.swish_beta);
  switch (a.mode) {
    case CUDNN_ACTIVATION_SIGMOID:
      return y * (1 - y);
    case CUDNN_ACTIVATION_RELU:
      return x > 0 ? T(1) : T(0);
    case CUDNN_ACTIVATION_TANH:
      return 1 - y * y;
    case CUDNN_ACTIVATION_CLIPPED_RELU:
      return x > 0 && x < coefficient ? T(1) : T(0);
    case CUDNN_ACTIVATION_ELU:
      return x < 0 ? y + coefficient : T(1);
    case CUDNN_ACTIVATION_SWISH: {
      const T gate = Sigmoid(beta * x);
      return gate + beta * x * gate * (1 - gate);
    }
    default:
      return 1;
  }
}

}  // namespace torpor::emulator
