#pragma once

#include <cstdint>
#include <vector>

#include "nvidia/cudnn/recurrent.h"

// Recurrent layers of dense values: sequences step after step, each of the whole batch; states
// pseudo layer after pseudo layer. Products by OpenBLAS.
namespace torpor::emulator {

// What a computation begins with, and what it ends with.
template <typename T>
struct RecurrentValues {
  std::vector<T> sequences;
  std::vector<T> hidden;
  std::vector<T> cell;  // of LSTMs
};

// What one pass through a pseudo layer leaves for its gradient; each step after step.
template <typename T>
struct DirectionTrace {
  std::vector<T> gates;       // after their functions
  std::vector<T> cells;       // of LSTMs
  std::vector<T> candidates;  // of GRUs: what the reset gate scales
};

template <typename T>
struct LayerTrace {
  std::vector<T> x;
  std::vector<T> y;
  std::vector<T> scales;  // by which dropout has multiplied y afterwards; empty: by none
  std::vector<DirectionTrace<T>> directions;
};

// `weights` as recurrent_weights.h says. Dropout draws from `seed`. Adds a layer's trace to
// `traces` where that is not null.
template <typename T>
RecurrentValues<T> RecurrentForward(const DnnRnnShapes& shapes, const std::vector<T>& weights,
                                    const RecurrentValues<T>& given, std::uint64_t seed,
                                    std::vector<LayerTrace<T>>* traces);

// The gradients of what was given and, added to `weight_gradients`, of the weights; by the
// gradients of the results.
template <typename T>
RecurrentValues<T> RecurrentBackward(const DnnRnnShapes& shapes, const std::vector<T>& weights,
                                     const RecurrentValues<T>& given,
                                     const std::vector<LayerTrace<T>>& traces,
                                     const RecurrentValues<T>& gradients,
                                     std::vector<T>& weight_gradients);

}  // namespace torpor::emulator
