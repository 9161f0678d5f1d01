#pragma once

#include <cudnn.h>

#include <cstdint>

#include "nvidia/cudnn/descriptors.h"
#include "nvidia/cudnn/recurrent.h"
#include "nvidia/cudnn/spatial.h"
#include "proto/cuda_api/call_memory.h"
#include "proto/cuda_api/cudnn_functions.h"

namespace torpor::cuda_api {

// The executor's services for generated cuDNN calls. The calls pass arguments that are checked for
// sense (nvidia/cudnn/shapes.h); implementations check ownership.
class CudnnEnvironment : public CallMemory {
 public:
  // The real library's entry points.
  virtual const CudnnFunctions& functions() const = 0;

  // Returns a real handle on the session's stream, ordered after the work that the stream waits
  // for; null without the library or the stream.
  virtual cudnnHandle_t BeginCall(std::uint64_t stream) = 0;

  // Return real descriptors of these values, valid until the next BeginCall; null if refused.
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
