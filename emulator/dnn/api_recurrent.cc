// Recurrent layers, with gradients and the states of dropout.
#include <cstring>
#include <string>

#include "emulator/blas/blas_threads.h"
#include "emulator/dnn/handle.h"
#include "emulator/dnn/recurrent.h"
#include "emulator/dnn/recurrent_weights.h"
#include "emulator/dnn/sequences.h"
#include "emulator/library/unsupported.h"
#include "nvidia/cudnn/recurrent_checks.h"

using namespace torpor;            // NOLINT: this file only defines the C interface
using namespace torpor::emulator;  // NOLINT

namespace {

constexpr char kForward[] = "cudnnRNNForward";
constexpr char kBackwardData[] = "cudnnRNNBackwardData_v8";
constexpr char kBackwardWeights[] = "cudnnRNNBackwardWeights_v8";

// The layout of a dropout's states in device memory.
struct DropoutStates {
  std::uint64_t seed = 0;
  std::uint64_t uses = 0;

  // Returns a new seed for each use, so that repeated passes drop different elements.
  std::uint64_t Next() { return seed + 0x9e3779b97f4a7c15u * ++uses; }
};

// Prints why a call of `function` is refused, once, and returns `status`.
cudnnStatus_t Refuse(const std::string& function, const char* why,
                     cudnnStatus_t status = CUDNN_STATUS_BAD_PARAM) {
  SayOnce(function + ": " + why);
  return status;
}

// Bytes of an element in the type of the computation.
std::uint64_t ComputeBytes(const DnnRnn& rnn) {
  return InTypeOf(rnn.type, [](auto type) -> std::uint64_t { return sizeof type; });
}

// Elements of a batch of sequences in dense form.
std::uint64_t SequenceElements(const DnnRnnData& x) {
  return DnnTimes(
      DnnTimes(static_cast<std::uint64_t>(x.max_steps), static_cast<std::uint64_t>(x.batch)),
      static_cast<std::uint64_t>(x.vector_size));
}

// Dropout acts between layers only.
bool HasDropout(const DnnRnn& rnn) { return rnn.dropout.probability > 0 && rnn.layers > 1; }

// The reserve space of a forward pass in training. Gradients are computed by repeating the pass, so
// the reserve keeps the dropout's seed, the inputs and, once the data gradients are computed, the
// weight gradients.
struct Reserve {
  explicit Reserve(const DnnRnnShapes& s) : Reserve(s.rnn, s.x) {}
  Reserve(const DnnRnn& rnn, const DnnRnnData& x)
      : gradients(DnnPlus(sizeof(std::uint64_t), DnnTimes(SequenceElements(x), ComputeBytes(rnn)))),
        bytes(DnnPlus(gradients, DnnTimes(CountWeights(rnn), ComputeBytes(rnn)))) {}

  const std::uint64_t x = sizeof(std::uint64_t);
  const std::uint64_t gradients;
  const std::uint64_t bytes;
};

// Copies `count` elements from byte `offset`; the memory may be unaligned for T.
template <typename T>
std::vector<T> Copied(const void* from, std::uint64_t offset, std::uint64_t count) {
  std::vector<T> values(count);
  std::memcpy(values.data(), static_cast<const char*>(from) + offset, count * sizeof(T));
  return values;
}
template <typename T>
void CopyTo(void* to, std::uint64_t offset, const std::vector<T>& values) {
  std::memcpy(static_cast<char*>(to) + offset, values.data(), values.size() * sizeof(T));
}

// Returns the feature of valid shapes that the emulator lacks, or null.
const char* Obstacle(const DnnRnnShapes& s) {
  if (s.rnn.input_mode == CUDNN_SKIP_INPUT) return "CUDNN_SKIP_INPUT is not supported";
  if (!DnnIsPacked(s.x) && s.rnn.flags != CUDNN_RNN_PADDED_IO_ENABLED)
    return "unpacked sequences need CUDNN_RNN_PADDED_IO_ENABLED";
  if (SequenceElements(s.x) > INT32_MAX || SequenceElements(s.y) > INT32_MAX ||
      CountWeights(s.rnn) > INT32_MAX)
    return "sequences or weights of more than 2^31 - 1 elements are not supported";
  return nullptr;
}

// The device memory of one call, as passed by the program.
struct Arguments {
  const void* x = nullptr;
  void* y = nullptr;
  const void* hx = nullptr;
  void* hy = nullptr;
  const void* cx = nullptr;
  void* cy = nullptr;
  const void* weights = nullptr;
  std::size_t weights_bytes = 0;
  void* reserve = nullptr;
  std::size_t reserve_bytes = 0;
  bool is_training = false;
};

// Checks everything that needs no device memory: obstacles, and sizes of the given spaces.
cudnnStatus_t Check(const char* function, const DnnRnnShapes& s, const Arguments& a) {
  if (const char* const obstacle = Obstacle(s))
    return Refuse(function, obstacle, CUDNN_STATUS_NOT_SUPPORTED);
  if (a.weights_bytes < CountWeights(s.rnn) * DnnTypeBytes(s.rnn.type))
    return Refuse(function, "the weight space is too small");
  if (!a.is_training) return CUDNN_STATUS_SUCCESS;
  if (a.reserve == nullptr || a.reserve_bytes < Reserve(s).bytes)
    return Refuse(function,
                  "training needs the reserve space that cudnnGetRNNTempSpaceSizes tells");
  if (HasDropout(s.rnn) && s.rnn.dropout.states_bytes < sizeof(DropoutStates))
    return Refuse(function, "the dropout has no states");
  return CUDNN_STATUS_SUCCESS;
}

// Bytes of optional states: 0 without an address.
std::uint64_t StatesBytes(const DnnTensor& shape, const void* data) {
  return data == nullptr || shape.rank == 0 ? 0 : DnnBytes(shape);
}
AccessExtent ReadStates(const DnnTensor& shape, const void* data) {
  return {data, StatesBytes(shape, data), false};
}
AccessExtent WrittenStates(const DnnTensor& shape, const void* data) {
  return {data, StatesBytes(shape, data), true};
}

// Zeros where no states are given.
template <typename T>
RecurrentValues<T> LoadStates(const DnnRnnShapes& s, const void* hidden, const void* cell) {
  const auto load = [&](const void* data, std::int32_t size) {
    const std::size_t count = static_cast<std::size_t>(DnnPseudoLayers(s.rnn)) *
                              static_cast<std::size_t>(s.x.batch) * static_cast<std::size_t>(size);
    return data == nullptr ? std::vector<T>(count) : LoadElements<T>(s.rnn.type, data, count);
  };
  RecurrentValues<T> values{{}, load(hidden, s.rnn.projection_size), {}};
  if (s.rnn.cell == CUDNN_LSTM) values.cell = load(cell, s.rnn.hidden_size);
  return values;
}

template <typename T>
void StoreStates(const DnnRnnShapes& s, const RecurrentValues<T>& values, void* hidden,
                 void* cell) {
  if (hidden != nullptr) StoreElements(s.rnn.type, hidden, values.hidden);
  if (cell != nullptr && s.cell.rank != 0) StoreElements(s.rnn.type, cell, values.cell);
}

template <typename T>
std::vector<T> LoadWeights(const DnnRnnShapes& s, const void* weights) {
  return LoadElements<T>(s.rnn.type, weights, CountWeights(s.rnn));
}

// Runs a forward pass in type T, and fills the reserve space in training.
template <typename T>
void RunForward(const DnnRnnShapes& s, const Arguments& a) {
  std::uint64_t seed = 0;
  if (a.is_training && HasDropout(s.rnn))
    seed = reinterpret_cast<DropoutStates*>(s.rnn.dropout.states)->Next();
  RecurrentValues<T> given = LoadStates<T>(s, a.hx, s.cell.rank == 0 ? nullptr : a.cx);
  given.sequences = LoadSequences<T>(s.x, a.x);
  if (a.is_training) {
    std::memcpy(a.reserve, &seed, sizeof seed);
    CopyTo(a.reserve, Reserve(s).x, given.sequences);
  }
  const RecurrentValues<T> result =
      RecurrentForward<T>(s, LoadWeights<T>(s, a.weights), given, seed, nullptr);
  StoreSequences(s.y, a.y, result.sequences);
  StoreStates(s, result, a.hy, a.cy);
}

// Where the gradients come from, and go.
struct Gradients {
  const void* dy = nullptr;
  void* dx = nullptr;
  const void* dhy = nullptr;
  void* dhx = nullptr;
  const void* dcy = nullptr;
  void* dcx = nullptr;
};

// Repeats the forward pass with its seed, then computes the gradients.
template <typename T>
void RunBackward(const DnnRnnShapes& s, const Arguments& a, const Gradients& g) {
  const Reserve reserve(s);
  std::uint64_t seed = 0;
  std::memcpy(&seed, a.reserve, sizeof seed);
  const bool has_cell = s.cell.rank != 0;
  RecurrentValues<T> given = LoadStates<T>(s, a.hx, has_cell ? a.cx : nullptr);
  given.sequences = Copied<T>(a.reserve, reserve.x, SequenceElements(s.x));
  const std::vector<T> weights = LoadWeights<T>(s, a.weights);
  std::vector<LayerTrace<T>> traces;
  RecurrentForward<T>(s, weights, given, seed, &traces);
  RecurrentValues<T> gradients = LoadStates<T>(s, g.dhy, has_cell ? g.dcy : nullptr);
  gradients.sequences = LoadSequences<T>(s.y, g.dy);
  std::vector<T> of_weights(weights.size());
  const RecurrentValues<T> result =
      RecurrentBackward<T>(s, weights, given, traces, gradients, of_weights);
  StoreSequences(s.x, g.dx, result.sequences);
  StoreStates(s, result, g.dhx, g.dcx);
  CopyTo(a.reserve, reserve.gradients, of_weights);
}

// Writes or adds the weight gradients from the reserve space.
template <typename T>
void StoreWeightGradients(const DnnRnnShapes& s, const void* reserve, bool adds, void* to) {
  std::vector<T> values = Copied<T>(reserve, Reserve(s).gradients, CountWeights(s.rnn));
  if (adds) {
    const std::vector<T> there = LoadWeights<T>(s, to);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += there[i];
  }
  StoreElements(s.rnn.type, to, values);
}

void PutShape(cudnnTensorDescriptor_t descriptor, const DnnTensor& shape) {
  if (descriptor != nullptr) static_cast<DnnTensor&>(*descriptor) = shape;
}

// Describes an existing matrix or bias.
void Tell(const DnnRnn& rnn, const void* weights, std::size_t place, std::size_t rows,
          std::size_t columns, cudnnTensorDescriptor_t descriptor, void** address) {
  const DnnDims dims = {1, static_cast<std::int32_t>(rows), static_cast<std::int32_t>(columns)};
  PutShape(descriptor, DnnDense(rnn.type, CUDNN_TENSOR_NCHW, 3, dims));
  if (address == nullptr) return;
  const std::size_t offset = place * DnnTypeBytes(rnn.type);
  *address = const_cast<char*>(static_cast<const char*>(weights)) + offset;
}

// Answers for a matrix or bias that the layer lacks.
void TellNone(cudnnTensorDescriptor_t descriptor, void** address) {
  PutShape(descriptor, {});
  if (address != nullptr) *address = nullptr;
}

}  // namespace

extern "C" {

// The states of the emulated generator: a seed and a count of uses.
cudnnStatus_t cudnnDropoutGetStatesSize(cudnnHandle_t handle, size_t* bytes) {
  return WithHandle(handle, [&](cudnnContext&) {
    if (bytes == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    *bytes = sizeof(DropoutStates);
    return CUDNN_STATUS_SUCCESS;
  });
}

// Also initialises the states, in stream order.
cudnnStatus_t cudnnSetDropoutDescriptor(cudnnDropoutDescriptor_t dropout, cudnnHandle_t handle,
                                        float probability, void* states, size_t states_bytes,
                                        unsigned long long seed) {
  return WithHandle(handle, [&](cudnnContext& context) {
    const cudnnStatus_t status =
        cudnnRestoreDropoutDescriptor(dropout, handle, probability, states, states_bytes, seed);
    if (status != CUDNN_STATUS_SUCCESS || states == nullptr) return status;
    if (states_bytes < sizeof(DropoutStates)) return CUDNN_STATUS_BAD_PARAM;
    return Queue(context, {{states, sizeof(DropoutStates), true}},
                 [=] { *static_cast<DropoutStates*>(states) = {.seed = seed}; });
  });
}

cudnnStatus_t cudnnGetRNNWeightSpaceSize(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn,
                                         size_t* bytes) {
  return WithHandle(handle, [&](cudnnContext&) {
    if (rnn == nullptr || bytes == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    if (!DnnIsValid(*rnn)) return CUDNN_STATUS_BAD_PARAM;
    *bytes = DnnTimes(CountWeights(*rnn), DnnTypeBytes(rnn->type));
    return CUDNN_STATUS_SUCCESS;
  });
}

// The emulator needs no workspace; training needs the reserve space.
cudnnStatus_t cudnnGetRNNTempSpaceSizes(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn,
                                        cudnnForwardMode_t mode, cudnnRNNDataDescriptor_t x,
                                        size_t* workspace, size_t* reserve) {
  return WithHandle(handle, [&](cudnnContext&) {
    if (rnn == nullptr || x == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    if (!DnnIsValid(*rnn) || !DnnIsValid(*x)) return CUDNN_STATUS_BAD_PARAM;
    if (workspace != nullptr) *workspace = 0;
    if (reserve != nullptr)
      *reserve = mode == CUDNN_FWD_MODE_TRAINING ? Reserve(*rnn, *x).bytes : 0;
    return CUDNN_STATUS_SUCCESS;
  });
}

// Tells where a matrix or bias lies in the weight space.
cudnnStatus_t cudnnGetRNNWeightParams(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn,
                                      int32_t pseudo_layer, size_t weights_bytes,
                                      const void* weights, int32_t linear_layer,
                                      cudnnTensorDescriptor_t matrix, void** matrix_address,
                                      cudnnTensorDescriptor_t bias, void** bias_address) {
  return WithHandle(handle, [&](cudnnContext&) {
    if (rnn == nullptr || weights == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    if (!DnnIsValid(*rnn) || pseudo_layer < 0 || pseudo_layer >= DnnPseudoLayers(*rnn) ||
        linear_layer < 0 || linear_layer >= DnnLinearLayers(*rnn) ||
        weights_bytes < DnnTimes(CountWeights(*rnn), DnnTypeBytes(rnn->type))) {
      return CUDNN_STATUS_BAD_PARAM;
    }
    const RecurrentWeights places(*rnn);
    const auto p = static_cast<std::size_t>(pseudo_layer);
    const auto number = static_cast<std::size_t>(linear_layer);
    const std::size_t n = places.hidden();
    if (number >= 2 * places.gates()) {
      Tell(*rnn, weights, places.ProjectionMatrix(p), places.projection(), n, matrix,
           matrix_address);
      TellNone(bias, bias_address);
      return CUDNN_STATUS_SUCCESS;
    }
    const bool of_input = number < places.gates();
    const std::size_t gate = number % places.gates();
    const std::size_t columns =
        of_input ? places.InputSize(p / places.directions()) : places.projection();
    const std::size_t matrices = of_input ? places.InputMatrices(p) : places.StateMatrices(p);
    Tell(*rnn, weights, matrices + gate * n * columns, n, columns, matrix, matrix_address);
    if (!(of_input ? places.has_input_biases() : places.has_state_biases())) {
      TellNone(bias, bias_address);
    } else {
      const std::size_t biases = of_input ? places.InputBiases(p) : places.StateBiases(p);
      Tell(*rnn, weights, biases + gate * n, n, 1, bias, bias_address);
    }
    return CUDNN_STATUS_SUCCESS;
  });
}

// The lengths come from the descriptors; the array of lengths in device memory is ignored.
cudnnStatus_t cudnnRNNForward(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn,
                              cudnnForwardMode_t mode, const int32_t*,
                              cudnnRNNDataDescriptor_t x_desc, const void* x,
                              cudnnRNNDataDescriptor_t y_desc, void* y,
                              cudnnTensorDescriptor_t h_desc, const void* hx, void* hy,
                              cudnnTensorDescriptor_t c_desc, const void* cx, void* cy,
                              size_t weights_bytes, const void* weights, size_t, void*,
                              size_t reserve_bytes, void* reserve) {
  return WithHandle(handle, [&](cudnnContext& context) {
    const Arguments a{x,
                      y,
                      hx,
                      hy,
                      cx,
                      cy,
                      weights,
                      weights_bytes,
                      reserve,
                      reserve_bytes,
                      mode == CUDNN_FWD_MODE_TRAINING};
    DnnRnnShapes s;
    const DnnRnnDescriptors given{.rnn = rnn,
                                  .x = x_desc,
                                  .y = y_desc,
                                  .hidden = h_desc,
                                  .has_hidden = hx != nullptr || hy != nullptr,
                                  .cell = c_desc,
                                  .has_cell = cx != nullptr || cy != nullptr};
    if (const char* const fault = DnnReadShapes(given, a.is_training, s))
      return Refuse(kForward, fault);
    const cudnnStatus_t status = Check(kForward, s, a);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    LimitBlasThreads();
    const bool drops = a.is_training && HasDropout(s.rnn);
    return Queue(
        context,
        {{x, DnnBytes(s.x), false},
         {y, DnnBytes(s.y), true},
         ReadStates(s.hidden, hx),
         WrittenStates(s.hidden, hy),
         ReadStates(s.cell, cx),
         WrittenStates(s.cell, cy),
         {weights, weights_bytes, false},
         {reserve, a.is_training ? Reserve(s).bytes : 0, true},
         {reinterpret_cast<void*>(s.rnn.dropout.states), drops ? sizeof(DropoutStates) : 0, true}},
        [=] { InTypeOf(s.rnn.type, [&](auto t) { RunForward<decltype(t)>(s, a); }); });
  });
}

// Must come before cudnnRNNBackwardWeights_v8, since it also computes the weight gradients.
cudnnStatus_t cudnnRNNBackwardData_v8(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn,
                                      const int32_t*, cudnnRNNDataDescriptor_t y_desc, const void*,
                                      const void* dy, cudnnRNNDataDescriptor_t x_desc, void* dx,
                                      cudnnTensorDescriptor_t h_desc, const void* hx,
                                      const void* dhy, void* dhx, cudnnTensorDescriptor_t c_desc,
                                      const void* cx, const void* dcy, void* dcx,
                                      size_t weights_bytes, const void* weights, size_t, void*,
                                      size_t reserve_bytes, void* reserve) {
  return WithHandle(handle, [&](cudnnContext& context) {
    const Arguments a{.hx = hx,
                      .cx = cx,
                      .weights = weights,
                      .weights_bytes = weights_bytes,
                      .reserve = reserve,
                      .reserve_bytes = reserve_bytes,
                      .is_training = true};
    const Gradients g{dy, dx, dhy, dhx, dcy, dcx};
    DnnRnnShapes s;
    const DnnRnnDescriptors given{.rnn = rnn,
                                  .x = x_desc,
                                  .y = y_desc,
                                  .hidden = h_desc,
                                  .has_hidden = hx != nullptr || dhy != nullptr || dhx != nullptr,
                                  .cell = c_desc,
                                  .has_cell = cx != nullptr || dcy != nullptr || dcx != nullptr};
    if (const char* const fault = DnnReadShapes(given, true, s))
      return Refuse(kBackwardData, fault);
    const cudnnStatus_t status = Check(kBackwardData, s, a);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    LimitBlasThreads();
    return Queue(context,
                 {{dy, DnnBytes(s.y), false},
                  {dx, DnnBytes(s.x), true},
                  ReadStates(s.hidden, hx),
                  ReadStates(s.hidden, dhy),
                  WrittenStates(s.hidden, dhx),
                  ReadStates(s.cell, cx),
                  ReadStates(s.cell, dcy),
                  WrittenStates(s.cell, dcx),
                  {weights, weights_bytes, false},
                  {reserve, Reserve(s).bytes, true}},
                 [=] { InTypeOf(s.rnn.type, [&](auto t) { RunBackward<decltype(t)>(s, a, g); }); });
  });
}

// Copies the weight gradients that the data gradients' call left in the reserve space.
cudnnStatus_t cudnnRNNBackwardWeights_v8(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn,
                                         cudnnWgradMode_t mode, const int32_t*,
                                         cudnnRNNDataDescriptor_t x_desc, const void*,
                                         cudnnTensorDescriptor_t, const void*,
                                         cudnnRNNDataDescriptor_t y_desc, const void*,
                                         size_t weights_bytes, void* dweights, size_t, void*,
                                         size_t reserve_bytes, void* reserve) {
  return WithHandle(handle, [&](cudnnContext& context) {
    const Arguments a{.weights = dweights,
                      .weights_bytes = weights_bytes,
                      .reserve = reserve,
                      .reserve_bytes = reserve_bytes,
                      .is_training = true};
    DnnRnnShapes s;
    if (const char* const fault = DnnReadShapes({.rnn = rnn, .x = x_desc, .y = y_desc}, true, s))
      return Refuse(kBackwardWeights, fault);
    const cudnnStatus_t status = Check(kBackwardWeights, s, a);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    const bool adds = mode == CUDNN_WGRAD_MODE_ADD;
    return Queue(
        context, {{dweights, weights_bytes, true}, {reserve, Reserve(s).bytes, false}}, [=] {
          InTypeOf(s.rnn.type,
                   [&](auto t) { StoreWeightGradients<decltype(t)>(s, reserve, adds, dweights); });
        });
  });
}

}  // extern "C"
