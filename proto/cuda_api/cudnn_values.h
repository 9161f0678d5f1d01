#pragma once

#include <cudnn.h>

#include <cstdint>

#include "nvidia/cudnn/recurrent_checks.h"
#include "nvidia/cudnn/shapes.h"

// Whether values of a cuDNN call's enumerations are known.
namespace torpor::wire {

// How many algorithms a question may ask for.
inline constexpr int kMaxDnnAlgorithms = 64;

constexpr bool DnnIsSoftmaxAlgorithm(std::int32_t value) {
  return value >= CUDNN_SOFTMAX_FAST && value <= CUDNN_SOFTMAX_LOG;
}
constexpr bool DnnIsSoftmaxMode(std::int32_t value) {
  return value == CUDNN_SOFTMAX_MODE_INSTANCE || value == CUDNN_SOFTMAX_MODE_CHANNEL;
}
constexpr bool DnnIsLrnMode(std::int32_t value) { return value == CUDNN_LRN_CROSS_CHANNEL_DIM1; }
constexpr bool DnnIsBatchNormMode(std::int32_t value) {
  return value >= CUDNN_BATCHNORM_PER_ACTIVATION && value <= CUDNN_BATCHNORM_SPATIAL_PERSISTENT;
}
constexpr bool DnnIsForwardAlgorithm(std::int32_t value) {
  return value >= 0 && value < CUDNN_CONVOLUTION_FWD_ALGO_COUNT;
}
constexpr bool DnnIsBackwardDataAlgorithm(std::int32_t value) {
  return value >= 0 && value < CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT;
}
constexpr bool DnnIsBackwardFilterAlgorithm(std::int32_t value) {
  return value >= 0 && value < CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT;
}

}  // namespace torpor::wire
