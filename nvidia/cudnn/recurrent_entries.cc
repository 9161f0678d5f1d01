// The C entries that create, change and read the descriptors of recurrent layers and of dropout,
// except for entries that need a GPU. Both the replacement library and the emulated library compile
// this file.
#include <cudnn.h>

#include <algorithm>
#include <cstring>

#include "nvidia/cudnn/descriptor_entries.h"
#include "nvidia/cudnn/recurrent.h"
#include "nvidia/cudnn/recurrent_checks.h"

using namespace torpor;  // NOLINT: this file only defines the C interface

#pragma GCC visibility push(default)
extern "C" {

cudnnStatus_t cudnnCreateDropoutDescriptor(cudnnDropoutDescriptor_t* dropout) {
  return DnnCreate(dropout);
}
cudnnStatus_t cudnnDestroyDropoutDescriptor(cudnnDropoutDescriptor_t dropout) {
  return DnnDestroy(dropout);
}
// Leaves the states in device memory unchanged.
cudnnStatus_t cudnnRestoreDropoutDescriptor(cudnnDropoutDescriptor_t dropout, cudnnHandle_t,
                                            float probability, void* states, size_t states_bytes,
                                            unsigned long long seed) {
  return DnnSet(dropout, DnnDropout{.probability = probability,
                                    .states = reinterpret_cast<std::uint64_t>(states),
                                    .states_bytes = states_bytes,
                                    .seed = seed});
}
cudnnStatus_t cudnnGetDropoutDescriptor(cudnnDropoutDescriptor_t dropout, cudnnHandle_t,
                                        float* probability, void** states,
                                        unsigned long long* seed) {
  if (dropout == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  DnnPut(probability, dropout->probability);
  if (states != nullptr) *states = reinterpret_cast<void*>(dropout->states);
  DnnPut(seed, dropout->seed);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateRNNDescriptor(cudnnRNNDescriptor_t* rnn) { return DnnCreate(rnn); }
cudnnStatus_t cudnnDestroyRNNDescriptor(cudnnRNNDescriptor_t rnn) { return DnnDestroy(rnn); }
cudnnStatus_t cudnnSetRNNDescriptor_v8(cudnnRNNDescriptor_t rnn, cudnnRNNAlgo_t algorithm,
                                       cudnnRNNMode_t cell, cudnnRNNBiasMode_t bias,
                                       cudnnDirectionMode_t direction,
                                       cudnnRNNInputMode_t input_mode, cudnnDataType_t type,
                                       cudnnDataType_t math_precision, cudnnMathType_t math_type,
                                       int32_t input_size, int32_t hidden_size,
                                       int32_t projection_size, int32_t layers,
                                       cudnnDropoutDescriptor_t dropout, uint32_t flags) {
  const cudnnStatus_t status =
      DnnSet(rnn, DnnRnn{.algorithm = algorithm,
                         .cell = cell,
                         .bias = bias,
                         .direction = direction,
                         .input_mode = input_mode,
                         .type = type,
                         .math_precision = math_precision,
                         .math_type = math_type,
                         .input_size = input_size,
                         .hidden_size = hidden_size,
                         .projection_size = projection_size,
                         .layers = layers,
                         .flags = flags,
                         .dropout = dropout == nullptr ? DnnDropout() : *dropout});
  if (status == CUDNN_STATUS_SUCCESS) rnn->dropout_descriptor = dropout;
  return status;
}
cudnnStatus_t cudnnGetRNNDescriptor_v8(cudnnRNNDescriptor_t rnn, cudnnRNNAlgo_t* algorithm,
                                       cudnnRNNMode_t* cell, cudnnRNNBiasMode_t* bias,
                                       cudnnDirectionMode_t* direction,
                                       cudnnRNNInputMode_t* input_mode, cudnnDataType_t* type,
                                       cudnnDataType_t* math_precision, cudnnMathType_t* math_type,
                                       int32_t* input_size, int32_t* hidden_size,
                                       int32_t* projection_size, int32_t* layers,
                                       cudnnDropoutDescriptor_t* dropout, uint32_t* flags) {
  if (rnn == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  DnnPut(algorithm, rnn->algorithm);
  DnnPut(cell, rnn->cell);
  DnnPut(bias, rnn->bias);
  DnnPut(direction, rnn->direction);
  DnnPut(input_mode, rnn->input_mode);
  DnnPut(type, rnn->type);
  DnnPut(math_precision, rnn->math_precision);
  DnnPut(math_type, rnn->math_type);
  DnnPut(input_size, rnn->input_size);
  DnnPut(hidden_size, rnn->hidden_size);
  DnnPut(projection_size, rnn->projection_size);
  DnnPut(layers, rnn->layers);
  DnnPut(dropout, rnn->dropout_descriptor);
  DnnPut(flags, rnn->flags);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateRNNDataDescriptor(cudnnRNNDataDescriptor_t* data) {
  return DnnCreate(data);
}
cudnnStatus_t cudnnDestroyRNNDataDescriptor(cudnnRNNDataDescriptor_t data) {
  return DnnDestroy(data);
}
cudnnStatus_t cudnnSetRNNDataDescriptor(cudnnRNNDataDescriptor_t data, cudnnDataType_t type,
                                        cudnnRNNDataLayout_t layout, int max_steps, int batch,
                                        int vector_size, const int* lengths, void* filling) {
  if (lengths == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  if (batch < 1) return CUDNN_STATUS_BAD_PARAM;
  try {
    DnnRnnData value{.type = type,
                     .layout = layout,
                     .max_steps = max_steps,
                     .batch = batch,
                     .vector_size = vector_size,
                     .lengths = {lengths, lengths + batch},
                     .is_filled = filling == nullptr ? 0u : 1u};
    if (filling != nullptr) std::memcpy(value.filling.data(), filling, DnnTypeBytes(type));
    return DnnSet(data, value);
  } catch (const std::bad_alloc&) {
    return CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
  }
}
cudnnStatus_t cudnnGetRNNDataDescriptor(cudnnRNNDataDescriptor_t data, cudnnDataType_t* type,
                                        cudnnRNNDataLayout_t* layout, int* max_steps, int* batch,
                                        int* vector_size, int max_lengths, int* lengths,
                                        void* filling) {
  if (data == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  if (max_lengths < 0) return CUDNN_STATUS_BAD_PARAM;
  DnnPut(type, data->type);
  DnnPut(layout, data->layout);
  DnnPut(max_steps, data->max_steps);
  DnnPut(batch, data->batch);
  DnnPut(vector_size, data->vector_size);
  if (lengths != nullptr)
    std::copy_n(data->lengths.begin(), std::min(max_lengths, data->batch), lengths);
  if (filling != nullptr && data->is_filled != 0)
    std::memcpy(filling, data->filling.data(), DnnTypeBytes(data->type));
  return CUDNN_STATUS_SUCCESS;
}

}  // extern "C"
#pragma GCC visibility pop
