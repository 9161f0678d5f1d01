#pragma once

#include <cuda.h>
#include <cudnn.h>

#include <functional>
#include <initializer_list>
#include <new>
#include <utility>

#include "emulator/dnn/tensor_values.h"
#include "emulator/library/stream_work.h"
#include "nvidia/cudnn/shapes.h"

// The object behind a cudnnHandle_t. Owned by the application; used by one thread at a time.
struct cudnnContext {
  const torpor::emulator::DriverCalls* driver = nullptr;
  CUstream stream = nullptr;
};

// Building blocks of the C entries.
namespace torpor::emulator {

// Calls `body(cudnnContext&)`, which queues the call's work. Returns CUDNN_STATUS_NOT_INITIALIZED
// for a null handle, and turns exceptions into statuses.
template <typename Body>
cudnnStatus_t WithHandle(cudnnHandle_t handle, Body&& body) noexcept {
  if (handle == nullptr) return CUDNN_STATUS_NOT_INITIALIZED;
  try {
    return std::forward<Body>(body)(*handle);
  } catch (const std::bad_alloc&) {
    return CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
  } catch (...) {
    return CUDNN_STATUS_INTERNAL_ERROR;
  }
}

// Checks that all tensors are set, valid, and of types that the emulator computes with.
inline cudnnStatus_t CheckTensors(std::initializer_list<const DnnTensor*> tensors) {
  for (const DnnTensor* tensor : tensors) {
    if (tensor == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    if (!DnnIsValid(*tensor)) return CUDNN_STATUS_BAD_PARAM;
    if (!IsComputable(tensor->type)) return CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE;
  }
  return CUDNN_STATUS_SUCCESS;
}

// Whether the tensors have equal dimensions; types and strides may differ.
inline bool HaveOneShape(const DnnTensor& a, const DnnTensor& b) {
  return a.rank == b.rank && a.dims == b.dims;
}

// Reads a scaling factor: double for results of type double, else float, as cuDNN defines.
inline double ReadScalar(const void* scalar, std::int32_t type) {
  return type == CUDNN_DATA_DOUBLE ? *static_cast<const double*>(scalar)
                                   : double{*static_cast<const float*>(scalar)};
}

// The scaling factors of a result: output = alpha * result + beta * old output.
struct Blend {
  double alpha = 1;
  double beta = 0;

  static Blend Read(const void* alpha, const void* beta, std::int32_t type) {
    return {ReadScalar(alpha, type), ReadScalar(beta, type)};
  }
};

// Queues `work` on the handle's stream after checking that the device may touch all `extents`.
inline cudnnStatus_t Queue(const cudnnContext& context, std::initializer_list<AccessExtent> extents,
                           std::function<void()> work) {
  const bool queued = QueueWork(*context.driver, context.stream, {extents.begin(), extents.size()},
                                std::move(work));
  return queued ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER;
}

// Calls body(float) or body(double), the type in which results of `type` are computed.
template <typename Body>
auto InTypeOf(std::int32_t type, Body&& body) {
  return type == CUDNN_DATA_DOUBLE ? body(double{}) : body(float{});
}

}  // namespace torpor::emulator
