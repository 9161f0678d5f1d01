#pragma once

#include <cudnn.h>

#include <array>
#include <cstdint>
#include <vector>

#include "nvidia/cudnn/descriptors.h"

// The descriptors of cuDNN's recurrent layers and of dropout as plain values (descriptors.h).
namespace torpor {

// Dropout, with the generator's state in device memory.
struct DnnDropout {
  float probability = 0;     // that an element becomes 0
  std::uint64_t states = 0;  // address of the generator's state in device memory; 0: none
  std::uint64_t states_bytes = 0;
  std::uint64_t seed = 0;

  template <typename V>
  void Visit(V& v) {
    v(probability), v(states), v(states_bytes), v(seed);
  }
};

// Stacked layers of recurrent cells; sizes in elements.
struct DnnRnn {
  std::int32_t algorithm = CUDNN_RNN_ALGO_STANDARD;
  std::int32_t cell = CUDNN_RNN_TANH;
  std::int32_t bias = CUDNN_RNN_DOUBLE_BIAS;
  std::int32_t direction = CUDNN_UNIDIRECTIONAL;
  std::int32_t input_mode = CUDNN_LINEAR_INPUT;
  std::int32_t type = CUDNN_DATA_FLOAT;
  std::int32_t math_precision = CUDNN_DATA_FLOAT;
  std::int32_t math_type = CUDNN_DEFAULT_MATH;
  std::int32_t input_size = 0;  // 0: not set yet
  std::int32_t hidden_size = 0;
  std::int32_t projection_size = 0;  // of what a cell gives out: hidden_size without a projection
  std::int32_t layers = 0;
  std::uint32_t flags = 0;  // CUDNN_RNN_PADDED_IO_...
  DnnDropout dropout{};     // between layers, in training

  template <typename V>
  void Visit(V& v) {
    v(algorithm), v(cell), v(bias), v(direction), v(input_mode), v(type), v(math_precision);
    v(math_type), v(input_size), v(hidden_size), v(projection_size), v(layers), v(flags);
    v(dropout);
  }
};

// A batch of sequences of vectors.
struct DnnRnnData {
  std::int32_t type = CUDNN_DATA_FLOAT;
  std::int32_t layout = CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED;
  std::int32_t max_steps = 0;  // 0: not set yet
  std::int32_t batch = 0;
  std::int32_t vector_size = 0;
  std::vector<std::int32_t> lengths;  // a sequence
  std::uint32_t is_filled = 0;        // whether what is beyond a sequence's end becomes `filling`
  std::array<std::uint8_t, 8> filling{};  // an element

  template <typename V>
  void Visit(V& v) {
    v(type), v(layout), v(max_steps), v(batch), v(vector_size), v(lengths), v(is_filled);
    v(filling);
  }
};

// All shapes of one computation. The initial and the final states have one shape: layers and
// directions, batch, size.
struct DnnRnnShapes {
  DnnRnn rnn;
  DnnRnnData x;
  DnnRnnData y;
  DnnTensor hidden;  // of rank 0 where no state is given or wanted
  DnnTensor cell;    // likewise; only LSTMs have such

  template <typename V>
  void Visit(V& v) {
    v(rnn), v(x), v(y), v(hidden), v(cell);
  }
};

}  // namespace torpor

// The objects behind the pointers of the C interface.
struct cudnnDropoutStruct : torpor::DnnDropout {};
struct cudnnRNNStruct : torpor::DnnRnn {
  cudnnDropoutDescriptor_t dropout_descriptor = nullptr;  // as it was set, for who asks
};
struct cudnnRNNDataStruct : torpor::DnnRnnData {};
