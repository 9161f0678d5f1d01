#pragma once

#include <cstdint>
#include <vector>

#include "nvidia/cudnn/recurrent.h"

// Recurrent layers of dense values. Sequences are ordered by step, each step holding the whole
// batch; states are ordered by pseudo layer. OpenBLAS computes the products.
namespace torpor::emulator {

// The inputs of a computation, or its results.
template <typename T>
struct RecurrentValues {
  std::vector<T> sequences;
  std::vector<T> hidden;
  std::vector<T> cell;  // of LSTMs
};

// Values of one pass through a pseudo layer that the gradient needs, ordered by step.
template <typename T>
struct DirectionTrace {
  std::vector<T> gates;       // after their functions
  std::vector<T> cells;       // of LSTMs
  std::vector<T> candidates;  // of GRUs: what the reset gate scales
};

// Values of one layer's pass that the gradient needs, both directions included.
template <typename T>
struct LayerTrace {
  std::vector<T> x;
  std::vector<T> y;
  std::vector<T> scales;  // by which dropout has multiplied y afterwards; empty: by none
  std::vector<DirectionTrace<T>> directions;
};

// Runs all layers. `weights` are in the order of recurrent_weights.h; dropout draws from `seed`.
// Appends a trace of each layer to `traces` unless null.
template <typename T>
RecurrentValues<T> RecurrentForward(const DnnRnnShapes& shapes, const std::vector<T>& weights,
                                    const RecurrentValues<T>& given, std::uint64_t seed,
                                    std::vector<LayerTrace<T>>* traces);

// Returns the gradients of the inputs `given`, from `gradients` of the results, and adds the
// weights' gradients to `weight_gradients`. `traces` come from RecurrentForward with equal
// arguments.
template <typename T>
RecurrentValues<T> RecurrentBackward(const DnnRnnShapes& shapes, const std::vector<T>& weights,
                                     const RecurrentValues<T>& given,
                                     const std::vector<LayerTrace<T>>& traces,
                                     const RecurrentValues<T>& gradients,
                                     std::vector<T>& weight_gradients);

}  // namespace torpor::emulator
