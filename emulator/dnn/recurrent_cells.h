#pragma once

#include <cmath>
#include <cstddef>

#include "emulator/dnn/activation.h"

// One step of one cell, and its gradient. Gates are stored one after another, `n` elements each, in
// cuDNN's order: input, forget, cell, output of an LSTM; reset, update, new of a GRU.
namespace torpor::emulator {

// `gates` holds the input's contributions and receives the gates; `from_state` holds the state's
// contributions. Updates `cell` and writes `hidden`.
template <typename T>
void LstmStep(std::size_t n, T* gates, const T* from_state, T* cell, T* hidden) {
  for (std::size_t i = 0; i < n; ++i) {
    T& input = gates[i];
    T& forget = gates[n + i];
    T& fresh = gates[2 * n + i];
    T& output = gates[3 * n + i];
    input = Sigmoid(input + from_state[i]);
    forget = Sigmoid(forget + from_state[n + i]);
    fresh = std::tanh(fresh + from_state[2 * n + i]);
    output = Sigmoid(output + from_state[3 * n + i]);
    cell[i] = forget * cell[i] + input * fresh;
    hidden[i] = output * std::tanh(cell[i]);
  }
}

// Writes the gradients of the gates' inputs to `slopes`. `d_cell` is the gradient of the cell state
// after the step, and becomes the gradient of the state before the step.
template <typename T>
void LstmSlopes(std::size_t n, const T* gates, const T* cell, const T* cell_before,
                const T* d_hidden, T* d_cell, T* slopes) {
  for (std::size_t i = 0; i < n; ++i) {
    const T input = gates[i];
    const T forget = gates[n + i];
    const T fresh = gates[2 * n + i];
    const T output = gates[3 * n + i];
    const T bent = std::tanh(cell[i]);
    const T d = d_cell[i] + d_hidden[i] * output * (1 - bent * bent);
    slopes[i] = d * fresh * input * (1 - input);
    slopes[n + i] = d * cell_before[i] * forget * (1 - forget);
    slopes[2 * n + i] = d * input * (1 - fresh * fresh);
    slopes[3 * n + i] = d_hidden[i] * bent * output * (1 - output);
    d_cell[i] = d * forget;
  }
}

// As LstmStep, from the state `before`. Stores the values that the reset gate scales in
// `candidates`.
template <typename T>
void GruStep(std::size_t n, T* gates, const T* from_state, const T* before, T* candidates,
             T* hidden) {
  for (std::size_t i = 0; i < n; ++i) {
    T& reset = gates[i];
    T& update = gates[n + i];
    T& fresh = gates[2 * n + i];
    candidates[i] = from_state[2 * n + i];
    reset = Sigmoid(reset + from_state[i]);
    update = Sigmoid(update + from_state[n + i]);
    fresh = std::tanh(fresh + reset * candidates[i]);
    hidden[i] = (1 - update) * fresh + update * before[i];
  }
}

// Writes the gradients of the gates' inputs to `slopes`, of the state's contributions to
// `state_slopes`, and of the state before the step, except through the gates, to `d_before`.
template <typename T>
void GruSlopes(std::size_t n, const T* gates, const T* candidates, const T* before,
               const T* d_hidden, T* slopes, T* state_slopes, T* d_before) {
  for (std::size_t i = 0; i < n; ++i) {
    const T reset = gates[i];
    const T update = gates[n + i];
    const T fresh = gates[2 * n + i];
    const T d_fresh = d_hidden[i] * (1 - update) * (1 - fresh * fresh);
    slopes[i] = d_fresh * candidates[i] * reset * (1 - reset);
    slopes[n + i] = d_hidden[i] * (before[i] - fresh) * update * (1 - update);
    slopes[2 * n + i] = d_fresh;
    state_slopes[i] = slopes[i];
    state_slopes[n + i] = slopes[n + i];
    state_slopes[2 * n + i] = d_fresh * reset;
    d_before[i] = d_hidden[i] * update;
  }
}

// A cell with one gate, ReLU or tanh.
template <typename T>
void PlainStep(std::size_t n, bool is_relu, T* gates, const T* from_state, T* hidden) {
  for (std::size_t i = 0; i < n; ++i) {
    const T sum = gates[i] + from_state[i];
    gates[i] = is_relu ? (sum < 0 ? T(0) : sum) : std::tanh(sum);
    hidden[i] = gates[i];
  }
}

template <typename T>
void PlainSlopes(std::size_t n, bool is_relu, const T* gates, const T* d_hidden, T* slopes) {
  for (std::size_t i = 0; i < n; ++i) {
    const T slope = is_relu ? (gates[i] > 0 ? T(1) : T(0)) : 1 - gates[i] * gates[i];
    slopes[i] = d_hidden[i] * slope;
  }
}

}  // namespace torpor::emulator
