#pragma once

#include <cudnn.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "emulator/dnn/tensor_values.h"

namespace torpor::emulator {

// `outer` times `inner` groups of `count` values, with `inner` elements from one value of a group
// to the next.
struct Groups {
  std::size_t outer = 1;
  std::size_t count = 1;
  std::size_t inner = 1;
};

// Groups of a whole sample, or of the channels at each point.
inline Groups SoftmaxGroups(const DnnTensor& shape, cudnnSoftmaxMode_t mode) {
  const std::size_t all = CountOf(shape);
  const auto samples = static_cast<std::size_t>(shape.dims[0]);
  if (mode == CUDNN_SOFTMAX_MODE_INSTANCE || shape.rank < 2) return {samples, all / samples, 1};
  const auto channels = static_cast<std::size_t>(shape.dims[1]);
  return {samples, channels, all / samples / channels};
}

// Calls visit(index of the first value) for each group.
template <typename Visit>
void ForEachGroup(const Groups& groups, Visit visit) {
  for (std::size_t i = 0; i < groups.outer; ++i) {
    for (std::size_t j = 0; j < groups.inner; ++j) visit(i * groups.count * groups.inner + j);
  }
}

// Replaces the values of each group by their softmax.
template <typename T>
void Softmax(cudnnSoftmaxAlgorithm_t algorithm, const Groups& groups, std::vector<T>& values) {
  ForEachGroup(groups, [&](std::size_t first) {
    const auto at = [&](std::size_t i) -> T& { return values[first + i * groups.inner]; };
    T largest = 0;  // the fast one does without
    if (algorithm != CUDNN_SOFTMAX_FAST) {
      largest = at(0);
      for (std::size_t i = 1; i < groups.count; ++i) largest = std::max(largest, at(i));
    }
    T sum = 0;
    for (std::size_t i = 0; i < groups.count; ++i) sum += std::exp(at(i) - largest);
    for (std::size_t i = 0; i < groups.count; ++i) {
      const T shifted = at(i) - largest;
      at(i) = algorithm == CUDNN_SOFTMAX_LOG ? shifted - std::log(sum) : std::exp(shifted) / sum;
    }
  });
}

// Replaces `gradient`, of the result `y`, by the gradient of the input.
template <typename T>
void SoftmaxGradient(cudnnSoftmaxAlgorithm_t algorithm, const Groups& groups,
                     const std::vector<T>& y, std::vector<T>& gradient) {
  const bool is_log = algorithm == CUDNN_SOFTMAX_LOG;
  ForEachGroup(groups, [&](std::size_t first) {
    T sum = 0;
    for (std::size_t i = 0; i < groups.count; ++i) {
      const std::size_t at = first + i * groups.inner;
      sum += is_log ? gradient[at] : gradient[at] * y[at];
    }
    for (std::size_t i = 0; i < groups.count; ++i) {
      const std::size_t at = first + i * groups.inner;
      gradient[at] = is_log ? gradient[at] - std::exp(y[at]) * sum : y[at] * (gradient[at] - sum);
    }
  });
}

}  // namespace torpor::emulator
