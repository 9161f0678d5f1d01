#pragma once

#include <string>

#include "absl/container/flat_hash_map.h"
#include "nvidia/cudnn/descriptors.h"
#include "nvidia/cudnn/recurrent.h"
#include "nvidia/cudnn/spatial.h"
#include "proto/cuda_api/cudnn_functions.h"

namespace torpor::executor {

// Caches real descriptors by value. Owns the descriptors. Not thread-safe.
class CudnnDescriptors {
 public:
  // `functions` must outlive the object.
  explicit CudnnDescriptors(const cuda_api::CudnnFunctions& functions) : functions_(functions) {}
  ~CudnnDescriptors() { Clear(); }
  CudnnDescriptors(const CudnnDescriptors&) = delete;
  CudnnDescriptors& operator=(const CudnnDescriptors&) = delete;

  // Returns the descriptor of `value`, valid until Trim; null if the library refuses the value or
  // lacks the kind of descriptor.
  cudnnTensorDescriptor_t Get(const DnnTensor& value);
  cudnnFilterDescriptor_t Get(const DnnFilter& value);
  cudnnConvolutionDescriptor_t Get(const DnnConvolution& value);
  cudnnPoolingDescriptor_t Get(const DnnPooling& value);
  cudnnSpatialTransformerDescriptor_t Get(const DnnSpatialTransformer& value);
  cudnnActivationDescriptor_t Get(const DnnActivation& value);
  cudnnOpTensorDescriptor_t Get(const DnnOpTensor& value);
  cudnnReduceTensorDescriptor_t Get(const DnnReduceTensor& value);
  cudnnLRNDescriptor_t Get(const DnnLrn& value);
  cudnnRNNDataDescriptor_t Get(const DnnRnnData& value);
  // The dropout's states are the GPU's address. The handle is used during the call only.
  cudnnRNNDescriptor_t Get(const DnnRnn& value, cudnnHandle_t handle);

  // Destroys all descriptors if there are too many; call between calls of cuDNN.
  void Trim();

 private:
  template <typename Real>
  using ByValue = absl::flat_hash_map<std::string, Real>;  // by the encoded value

  // Returns the known descriptor of `value`, or makes one with `create` and `set`.
  template <typename Real, typename Value, typename Set>
  Real Find(ByValue<Real>& known, cudnnStatus_t (*create)(Real*), cudnnStatus_t (*destroy)(Real),
            const Value& value, Set set);
  cudnnDropoutDescriptor_t Get(const DnnDropout& value, cudnnHandle_t handle);
  void Clear();

  const cuda_api::CudnnFunctions& functions_;
  ByValue<cudnnTensorDescriptor_t> tensors_;
  ByValue<cudnnFilterDescriptor_t> filters_;
  ByValue<cudnnConvolutionDescriptor_t> convolutions_;
  ByValue<cudnnPoolingDescriptor_t> poolings_;
  ByValue<cudnnSpatialTransformerDescriptor_t> transformers_;
  ByValue<cudnnActivationDescriptor_t> activations_;
  ByValue<cudnnOpTensorDescriptor_t> operations_;
  ByValue<cudnnReduceTensorDescriptor_t> reductions_;
  ByValue<cudnnLRNDescriptor_t> lrns_;
  ByValue<cudnnRNNDataDescriptor_t> sequences_;
  ByValue<cudnnRNNDescriptor_t> rnns_;  // refer to dropouts
  ByValue<cudnnDropoutDescriptor_t> dropouts_;
};

}  // namespace torpor::executor
