#pragma once

#include <cstdint>

#include "proto/cuda_api/cudnn_dispatch.h"
#include "server/executor/library/cudnn_descriptors.h"
#include "server/executor/library/cudnn_graphs.h"
#include "server/executor/library/cudnn_library.h"
#include "server/executor/runtime/stream_set.h"
#include "server/executor/session_memory/session_device_memory.h"

namespace torpor::executor {

// Executes one session's cuDNN calls, all on one real handle, which the session holds only while
// running. The individual computations are generated. Not thread-safe; call with the device
// current.
class CudnnCalls final : public cuda_api::CudnnHandler {
 public:
  // `pool`, `streams` and `memory` must outlive the object.
  CudnnCalls(CudnnPool& pool, StreamSet& streams, SessionMemory& memory)
      : pool_(pool),
        streams_(streams),
        memory_(memory),
        descriptors_(pool.functions()),
        graphs_(pool.functions(), pool.plans()) {}
  // Requires that all of the session's work is done.
  ~CudnnCalls() override { ReleaseHandle(); }

  // Gives the real handle back. The session's work must be done.
  void ReleaseHandle();

  // Handlers of the client's calls that are not generated. Commands may come from hostile clients.
  cuda_api::CallStatus CudnnConvolutionAlgorithms(
      const wire::CudnnConvolutionAlgorithms& command,
      wire::CudnnConvolutionAlgorithmsResult& result) override;
  cuda_api::CallStatus CudnnGraphChoices(const wire::CudnnGraphChoices& command,
                                         wire::CudnnGraphChoicesResult& result) override;
  cuda_api::CallStatus CudnnGraphEngine(const wire::CudnnGraphEngine& command,
                                        wire::CudnnGraphEngineResult& result) override;
  cuda_api::CallStatus CudnnGraphPlan(const wire::CudnnGraphPlan& command,
                                      wire::CudnnGraphPlanResult& result) override;
  cuda_api::CallStatus CudnnGraphExecute(const wire::CudnnGraphExecute& command) override;
  cuda_api::CallStatus CudnnRnnForward(const wire::CudnnRnnForward& command) override;
  cuda_api::CallStatus CudnnRnnBackwardData(const wire::CudnnRnnBackwardData& command) override;
  cuda_api::CallStatus CudnnRnnBackwardWeights(
      const wire::CudnnRnnBackwardWeights& command) override;
  cuda_api::CallStatus CudnnRnnParameters(const wire::CudnnRnnParameters& command,
                                          wire::CudnnRnnParametersResult& result) override;
  cuda_api::CallStatus CudnnRnnTempSpaces(const wire::CudnnRnnTempSpaces& command,
                                          wire::CudnnRnnTempSpacesResult& result) override;
  cuda_api::CallStatus CudnnDropoutStates(const wire::CudnnDropoutStates& command) override;

  const cuda_api::CudnnFunctions& functions() const override { return pool_.functions(); }
  void* Resolve(std::uint64_t address, std::uint64_t bytes, cuda_api::Access access) override {
    return memory_.Resolve(address, bytes, access);
  }
  // Prepares the real handle for one computation on the client's `stream`. Returns null if the
  // stream is unknown or the library creates no handle. May destroy descriptors of earlier calls.
  cudnnHandle_t BeginCall(std::uint64_t stream) override;

  // Return the real descriptor of a value, valid until the next BeginCall; null if the library
  // refuses the value.
  cudnnTensorDescriptor_t Real(const DnnTensor& value) override { return descriptors_.Get(value); }
  cudnnFilterDescriptor_t Real(const DnnFilter& value) override { return descriptors_.Get(value); }
  cudnnConvolutionDescriptor_t Real(const DnnConvolution& value) override {
    return descriptors_.Get(value);
  }
  cudnnPoolingDescriptor_t Real(const DnnPooling& value) override {
    return descriptors_.Get(value);
  }
  cudnnSpatialTransformerDescriptor_t Real(const DnnSpatialTransformer& value) override {
    return descriptors_.Get(value);
  }
  cudnnActivationDescriptor_t Real(const DnnActivation& value) override {
    return descriptors_.Get(value);
  }
  cudnnOpTensorDescriptor_t Real(const DnnOpTensor& value) override {
    return descriptors_.Get(value);
  }
  cudnnReduceTensorDescriptor_t Real(const DnnReduceTensor& value) override {
    return descriptors_.Get(value);
  }
  cudnnLRNDescriptor_t Real(const DnnLrn& value) override { return descriptors_.Get(value); }
  cudnnRNNDescriptor_t Real(const DnnRnn& value) override;
  cudnnRNNDataDescriptor_t Real(const DnnRnnData& value) override {
    return descriptors_.Get(value);
  }

 private:
  // Asks the library about a graph; calls `ask` with the real handle.
  template <typename Ask>
  cuda_api::CallStatus AboutGraph(const char* symbol, const DnnGraph& graph, Ask ask);

  CudnnPool& pool_;
  StreamSet& streams_;
  SessionDeviceMemory memory_;
  CudnnDescriptors descriptors_;
  CudnnGraphs graphs_;
  cudnnHandle_t handle_ = nullptr;
  CUstream handle_stream_ = nullptr;  // set on the real handle
};

}  // namespace torpor::executor
