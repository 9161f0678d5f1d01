#pragma once

#include <cudnn.h>

#include <cstdint>

#include "nvidia/cudnn/descriptors.h"
#include "nvidia/cudnn/recurrent.h"
#include "nvidia/cudnn/spatial.h"
#include "proto/cuda_api/cudnn_functions.h"
#include "proto/cuda_api/device_memory.h"

namespace torpor::cuda_api {

// What the generated cuDNN calls ask of the executor. Everything they pass on was checked for sense
// (nvidia/cudnn/shapes.h), not for ownership: that is asked here.
class CudnnEnvironment : public DeviceMemory {
 public:
  // The real library's entry points.
  virtual const CudnnFunctions& functions() const = 0;

  // A real handle on the session's stream, ordered after what that must wait for; null if there is
  // no library or no such stream.
  virtual cudnnHandle_t BeginCall(std::uint64_t stream) = 0;

  // Real descriptors of these values, the library's until the next BeginCall; null if it refuses.
  virtual cudnnTensorDescriptor_t Real(const DnnTensor& value) = 0;
  virtual cudnnFilterDescriptor_t Real(const DnnFilter& value) = 0;
  virtual cudnnConvolutionDescriptor_t Real(const DnnConvolution& value) = 0;
  virtual cudnnPoolingDescriptor_t Real(const DnnPooling& value) = 0;
  virtual cudnnSpatialTransformerDescriptor_t Real(const DnnSpatialTransformer& value) = 0;
  virtual cudnnActivationDescriptor_t Real(const DnnActivation& value) = 0;
  virtual cudnnOpTensorDescriptor_t Real(const DnnOpTensor& value) = 0;
  virtual cudnnReduceTensorDescriptor_t Real(const DnnReduceTensor& value) = 0;
  virtual cudnnLRNDescriptor_t Real(const DnnLrn& value) = 0;
  virtual cudnnRNNDescriptor_t Real(const DnnRnn& value) = 0;
  virtual cudnnRNNDataDescriptor_t Real(const DnnRnnData& value) = 0;
};

}  // namespace torpor::cuda_api
