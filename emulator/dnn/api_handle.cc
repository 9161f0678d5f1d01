// Handles, and the answer of unsupported functions.
#include <cudnn.h>

#include <new>

#include "emulator/dnn/handle.h"
#include "emulator/library/unsupported.h"

using namespace torpor::emulator;  // NOLINT: this file only defines the C interface

namespace torpor::emulator {

int DnnNotSupported(const char* function) {
  SayUnsupported(function);
  return CUDNN_STATUS_NOT_SUPPORTED;
}

}  // namespace torpor::emulator

extern "C" {

// Needs a current context, as NVIDIA's library does.
cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  if (handle == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  const DriverCalls* driver = DriverCalls::Get();
  CUcontext current = nullptr;
  if (driver == nullptr || driver->ctx_get_current(&current) != CUDA_SUCCESS ||
      current == nullptr) {
    return CUDNN_STATUS_NOT_INITIALIZED;
  }
  *handle = new (std::nothrow) cudnnContext{driver, nullptr};
  return *handle == nullptr ? CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED
                            : CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  return WithHandle(handle, [](cudnnContext& context) {
    // As NVIDIA's does; queued work needs nothing of the handle.
    context.driver->stream_synchronize(context.stream);
    delete &context;
    return CUDNN_STATUS_SUCCESS;
  });
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  return WithHandle(handle, [&](cudnnContext& context) {
    context.stream = stream;
    return CUDNN_STATUS_SUCCESS;
  });
}

cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t* stream) {
  return WithHandle(handle, [&](cudnnContext& context) {
    if (stream == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    *stream = context.stream;
    return CUDNN_STATUS_SUCCESS;
  });
}

size_t cudnnGetVersion() { return CUDNN_VERSION; }
size_t cudnnGetCudartVersion() { return CUDART_VERSION; }
size_t cudnnGetMaxDeviceVersion() { return CUDNN_MAX_DEVICE_VERSION; }
const char* cudnnGetErrorString(cudnnStatus_t status) {
  return status == CUDNN_STATUS_SUCCESS ? "CUDNN_STATUS_SUCCESS" : "an error of the emulated cuDNN";
}

}  // extern "C"
