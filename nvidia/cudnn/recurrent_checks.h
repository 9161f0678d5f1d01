#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "nvidia/cudnn/recurrent.h"
#include "nvidia/cudnn/shapes.h"

// Validity of the descriptors of recurrent layers, alone and together, and derived sizes. Safe for
// arbitrary values.
namespace torpor {

constexpr bool DnnIsValid(const DnnDropout& d) { return d.probability >= 0 && d.probability <= 1; }

constexpr bool DnnIsRecurrentType(std::int32_t type) {
  return type == CUDNN_DATA_FLOAT || type == CUDNN_DATA_DOUBLE || type == CUDNN_DATA_HALF ||
         type == CUDNN_DATA_BFLOAT16;
}

constexpr bool DnnIsValid(const DnnRnn& r) {
  const bool known = r.algorithm >= 0 && r.algorithm < CUDNN_RNN_ALGO_COUNT && r.cell >= 0 &&
                     r.cell <= CUDNN_GRU && r.bias >= 0 && r.bias <= CUDNN_RNN_SINGLE_REC_BIAS &&
                     r.direction >= 0 && r.direction <= CUDNN_BIDIRECTIONAL && r.input_mode >= 0 &&
                     r.input_mode <= CUDNN_SKIP_INPUT && DnnIsRecurrentType(r.type) &&
                     DnnIsRecurrentType(r.math_precision) && r.math_type >= 0 &&
                     r.math_type <= CUDNN_FMA_MATH && r.flags <= CUDNN_RNN_PADDED_IO_ENABLED;
  const bool sized = r.input_size >= 1 && r.hidden_size >= 1 && r.projection_size >= 1 &&
                     r.projection_size <= r.hidden_size && r.layers >= 1 &&
                     r.layers <= INT32_MAX / 2 &&
                     (r.cell == CUDNN_LSTM || r.projection_size == r.hidden_size);
  return known && sized && DnnIsValid(r.dropout);
}

// 2 for bidirectional layers, else 1.
constexpr std::int32_t DnnDirections(const DnnRnn& r) {
  return r.direction == CUDNN_BIDIRECTIONAL ? 2 : 1;
}
// The number of pseudo layers, each with weights of its own: the directions of every layer, layer
// after layer.
constexpr std::int32_t DnnPseudoLayers(const DnnRnn& r) { return r.layers * DnnDirections(r); }

// Gates of a cell, each with a matrix for the input and a matrix for the state.
constexpr std::int32_t DnnGates(const DnnRnn& r) {
  switch (r.cell) {
    case CUDNN_LSTM:
      return 4;
    case CUDNN_GRU:
      return 3;
    default:
      return 1;
  }
}
constexpr bool DnnHasProjection(const DnnRnn& r) { return r.projection_size < r.hidden_size; }
// The number of a pseudo layer's matrices: of the gates from the input, of the gates from the
// state, and of the projection.
constexpr std::int32_t DnnLinearLayers(const DnnRnn& r) {
  return 2 * DnnGates(r) + (DnnHasProjection(r) ? 1 : 0);
}

// Whether the sequences lie in memory without gaps, step by step.
constexpr bool DnnIsPacked(const DnnRnnData& x) {
  return x.layout == CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED;
}

inline bool DnnIsValid(const DnnRnnData& x) {
  if (!DnnIsRecurrentType(x.type) || x.layout < 0 ||
      x.layout > CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED || x.max_steps < 1 || x.batch < 1 ||
      x.vector_size < 1 || x.lengths.size() != static_cast<std::size_t>(x.batch)) {
    return false;
  }
  const bool fit = std::all_of(x.lengths.begin(), x.lengths.end(), [&](std::int32_t length) {
    return length >= 0 && length <= x.max_steps;
  });
  // Packed sequences are stored step by step, so the longest come first.
  return fit && (!DnnIsPacked(x) || std::is_sorted(x.lengths.rbegin(), x.lengths.rend()));
}

// The number of vectors in memory.
inline std::uint64_t DnnRows(const DnnRnnData& x) {
  if (!DnnIsPacked(x))
    return DnnTimes(static_cast<std::uint64_t>(x.max_steps), static_cast<std::uint64_t>(x.batch));
  std::uint64_t rows = 0;
  for (const std::int32_t length : x.lengths) rows += static_cast<std::uint64_t>(length);
  return rows;
}

inline std::uint64_t DnnBytes(const DnnRnnData& x) {
  return DnnTimes(DnnTimes(DnnRows(x), static_cast<std::uint64_t>(x.vector_size)),
                  DnnTypeBytes(x.type));
}

// Whether `states` is a dense tensor of states of that size; further dimensions must have size 1.
constexpr bool DnnHoldsStates(const DnnTensor& states, const DnnRnn& r, std::int32_t batch,
                              std::int32_t size) {
  if (!DnnIsValid(states) || states.rank < 3 || states.type != r.type ||
      states.dims[0] != DnnPseudoLayers(r) || states.dims[1] != batch || states.dims[2] != size) {
    return false;
  }
  std::int64_t stride = 1;
  for (std::size_t i = DnnDimensions(states.rank); i-- > 0;) {
    if (i > 2 && states.dims[i] != 1) return false;
    if (states.dims[i] > 1 && states.strides[i] != stride) return false;
    if (stride <= INT32_MAX) stride *= states.dims[i];
  }
  return true;
}

// Returns the fault of the shapes of one computation, or null.
inline const char* DnnFault(const DnnRnnShapes& s) {
  if (!DnnIsValid(s.rnn)) return "the layers' descriptor is not set, or not valid";
  if (!DnnIsValid(s.x) || !DnnIsValid(s.y)) return "a sequence's descriptor is not set";
  if (s.x.type != s.rnn.type || s.y.type != s.rnn.type)
    return "the sequences are not of the weights' type";
  if (s.x.vector_size != s.rnn.input_size ||
      s.y.vector_size != std::int64_t{s.rnn.projection_size} * DnnDirections(s.rnn)) {
    return "the vectors of a sequence are not as long as the layers ask";
  }
  if (s.x.layout != s.y.layout || s.x.max_steps != s.y.max_steps || s.x.batch != s.y.batch ||
      s.x.lengths != s.y.lengths) {
    return "what goes in and what comes out are not sequences of the same lengths and layout";
  }
  if (s.hidden.rank != 0 && !DnnHoldsStates(s.hidden, s.rnn, s.x.batch, s.rnn.projection_size))
    return "the hidden states' tensor is not dense, or not of the layers' shape";
  if (s.cell.rank != 0 &&
      (s.rnn.cell != CUDNN_LSTM || !DnnHoldsStates(s.cell, s.rnn, s.x.batch, s.rnn.hidden_size))) {
    return "the cell states' tensor is not dense, or not of an LSTM's shape";
  }
  return nullptr;
}

// The descriptors of a call. `has_hidden` and `has_cell` tell whether the call passes an address of
// such states.
struct DnnRnnDescriptors {
  const cudnnRNNStruct* rnn = nullptr;
  const cudnnRNNDataStruct* x = nullptr;
  const cudnnRNNDataStruct* y = nullptr;
  const cudnnTensorStruct* hidden = nullptr;
  bool has_hidden = false;
  const cudnnTensorStruct* cell = nullptr;
  bool has_cell = false;
};

// Copies the descriptors to `shapes`, which must be default-constructed. Returns their fault, or
// null.
inline const char* DnnReadShapes(const DnnRnnDescriptors& given, bool is_training,
                                 DnnRnnShapes& shapes) {
  if (given.rnn == nullptr || given.x == nullptr || given.y == nullptr)
    return "a descriptor is null";
  shapes.rnn = *given.rnn;
  if (!is_training) shapes.rnn.dropout = {};
  shapes.x = *given.x;
  shapes.y = *given.y;
  if (given.has_hidden) {
    if (given.hidden == nullptr || given.hidden->rank == 0)
      return "hidden states are given without their descriptor";
    shapes.hidden = *given.hidden;
  }
  // cuDNN ignores the cell states of cells other than LSTMs.
  if (given.has_cell && shapes.rnn.cell == CUDNN_LSTM) {
    if (given.cell == nullptr || given.cell->rank == 0)
      return "cell states are given without their descriptor";
    shapes.cell = *given.cell;
  }
  return DnnFault(shapes);
}

}  // namespace torpor
