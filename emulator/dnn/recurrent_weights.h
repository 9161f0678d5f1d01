#pragma once

#include <cstddef>
#include <cstdint>

#include "nvidia/cudnn/recurrent_checks.h"

// Offsets, in elements, of a recurrent layer's weights in the emulator's order. First come the
// matrices of every pseudo layer: of the gates from the input, of the gates from the state, of the
// projection. Then come the biases of every pseudo layer. Matrices are stored by rows, a row for
// each output.
namespace torpor::emulator {

class RecurrentWeights {
 public:
  explicit RecurrentWeights(const DnnRnn& rnn) : rnn_(rnn) {}

  std::size_t hidden() const { return static_cast<std::size_t>(rnn_.hidden_size); }
  std::size_t projection() const { return static_cast<std::size_t>(rnn_.projection_size); }
  std::size_t directions() const { return static_cast<std::size_t>(DnnDirections(rnn_)); }
  std::size_t gates() const { return static_cast<std::size_t>(DnnGates(rnn_)); }
  // Outputs of all gates of a pseudo layer.
  std::size_t rows() const { return gates() * hidden(); }
  bool has_input_biases() const {
    return rnn_.bias == CUDNN_RNN_DOUBLE_BIAS || rnn_.bias == CUDNN_RNN_SINGLE_INP_BIAS;
  }
  bool has_state_biases() const {
    return rnn_.bias == CUDNN_RNN_DOUBLE_BIAS || rnn_.bias == CUDNN_RNN_SINGLE_REC_BIAS;
  }

  // Elements of an input vector of `layer`.
  std::size_t InputSize(std::size_t layer) const {
    return layer == 0 ? static_cast<std::size_t>(rnn_.input_size) : projection() * directions();
  }

  // Offsets of pseudo layer `p`. The matrices of the gates, and their biases, are contiguous.
  std::size_t InputMatrices(std::size_t p) const {
    const std::size_t first = directions();  // those of the first layer, which may be of other size
    return p < first ? p * MatricesOf(0) : first * MatricesOf(0) + (p - first) * MatricesOf(1);
  }
  std::size_t StateMatrices(std::size_t p) const {
    return InputMatrices(p) + rows() * InputSize(p / directions());
  }
  std::size_t ProjectionMatrix(std::size_t p) const {
    return StateMatrices(p) + rows() * projection();
  }
  std::size_t InputBiases(std::size_t p) const { return InputMatrices(Count()) + p * BiasesOf(); }
  std::size_t StateBiases(std::size_t p) const {
    return InputBiases(p) + (has_input_biases() ? rows() : 0);
  }

  // Number of all elements.
  std::size_t size() const { return InputBiases(Count()); }

 private:
  std::size_t Count() const { return static_cast<std::size_t>(DnnPseudoLayers(rnn_)); }
  std::size_t MatricesOf(std::size_t layer) const {
    const std::size_t projected = DnnHasProjection(rnn_) ? projection() * hidden() : 0;
    return rows() * (InputSize(layer) + projection()) + projected;
  }
  std::size_t BiasesOf() const {
    return rows() * ((has_input_biases() ? 1u : 0u) + (has_state_biases() ? 1u : 0u));
  }

  const DnnRnn rnn_;
};

// Returns the number of elements of all weights, or kDnnEndless if they would not fit;
// RecurrentWeights must not be used then.
constexpr std::uint64_t CountWeights(const DnnRnn& rnn) {
  const auto size = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
  const std::uint64_t rows = size(std::int64_t{DnnGates(rnn)} * rnn.hidden_size);
  const std::uint64_t output = size(std::int64_t{rnn.projection_size} * DnnDirections(rnn));
  const std::uint64_t widest = output + size(rnn.input_size) + size(rnn.projection_size) + 2;
  const std::uint64_t max =
      DnnTimes(size(DnnPseudoLayers(rnn)),
               DnnPlus(DnnTimes(rows, widest), DnnTimes(output, size(rnn.hidden_size))));
  return max > UINT64_MAX / 16 ? kDnnEndless : RecurrentWeights(rnn).size();
}

}  // namespace torpor::emulator
