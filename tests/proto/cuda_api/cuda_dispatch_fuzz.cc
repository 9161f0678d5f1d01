#include <cstdlib>
#include <cstring>

#include "proto/cuda_api/cublas_dispatch.h"
#include "proto/cuda_api/cublaslt_dispatch.h"
#include "proto/cuda_api/cudart_dispatch.h"
#include "proto/cuda_api/cudnn_dispatch.h"
#include "proto/cuda_api/fake_cublas_handler.h"
#include "proto/cuda_api/fake_cublaslt_handler.h"
#include "proto/cuda_api/fake_cudart_handler.h"
#include "proto/cuda_api/fake_cudnn_handler.h"

namespace torpor::cuda_api {
namespace {

// Owns everything, so that every extent is worked out; the library has no function, so that no
// call is made.
class OwnsEverything : public FakeCublasHandler {
 public:
  const CublasFunctions& functions() const override { return functions_; }
  void* Resolve(std::uint64_t, std::uint64_t bytes, Access) override {
    if (bytes == 0) std::abort();
    return this;
  }
  cublasHandle_t BeginCall(std::uint64_t, cublasPointerMode_t) override { return nullptr; }

 private:
  CublasFunctions functions_;
};

// The same of cuDNN.
class OwnsEveryTensor : public FakeCudnnHandler {
 public:
  const CudnnFunctions& functions() const override { return functions_; }
  void* Resolve(std::uint64_t, std::uint64_t bytes, Access) override {
    if (bytes == 0) std::abort();
    return this;
  }
  cudnnHandle_t BeginCall(std::uint64_t) override { return nullptr; }
  cudnnTensorDescriptor_t Real(const DnnTensor&) override { return nullptr; }
  cudnnFilterDescriptor_t Real(const DnnFilter&) override { return nullptr; }
  cudnnConvolutionDescriptor_t Real(const DnnConvolution&) override { return nullptr; }
  cudnnPoolingDescriptor_t Real(const DnnPooling&) override { return nullptr; }
  cudnnSpatialTransformerDescriptor_t Real(const DnnSpatialTransformer&) override {
    return nullptr;
  }
  cudnnActivationDescriptor_t Real(const DnnActivation&) override { return nullptr; }
  cudnnOpTensorDescriptor_t Real(const DnnOpTensor&) override { return nullptr; }
  cudnnReduceTensorDescriptor_t Real(const DnnReduceTensor&) override { return nullptr; }
  cudnnLRNDescriptor_t Real(const DnnLrn&) override { return nullptr; }
  cudnnRNNDescriptor_t Real(const DnnRnn&) override { return nullptr; }
  cudnnRNNDataDescriptor_t Real(const DnnRnnData&) override { return nullptr; }

 private:
  CudnnFunctions functions_;
};

}  // namespace
}  // namespace torpor::cuda_api

// A call id and the bytes that claim to be its fields.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace torpor::cuda_api;  // NOLINT
  std::uint32_t call_id = 0;
  if (size < sizeof call_id) return 0;
  std::memcpy(&call_id, data, sizeof call_id);
  const std::span fields(data + sizeof call_id, size - sizeof call_id);

  CallOutcome outcome;
  FakeCudartHandler cudart;
  const bool ran = DispatchCudart(cudart.handlers(), call_id, fields, outcome).ok();
  if (ran != (cudart.call_ids.size() == 1)) std::abort();
  OwnsEverything cublas;
  if (DispatchCublas(cublas, call_id, fields, outcome).ok() && ran) std::abort();
  FakeCublasLtHandler cublaslt;
  if (DispatchCublasLt(cublaslt, call_id, fields, outcome).ok() && ran) std::abort();
  OwnsEveryTensor cudnn;
  if (DispatchCudnn(cudnn, call_id, fields, outcome).ok() && ran) std::abort();
  return 0;
}
