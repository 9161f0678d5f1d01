#pragma once

#include <cublas_v2.h>
#include <cuda.h>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <utility>

#include "emulator/library/stream_work.h"

// The object behind a cublasHandle_t. Owned by the application from cublasCreate to cublasDestroy;
// used by one thread at a time.
struct cublasContext {
  const torpor::emulator::DriverCalls* driver = nullptr;
  CUstream stream = nullptr;
  cublasPointerMode_t pointer_mode = CUBLAS_POINTER_MODE_HOST;
  cublasMath_t math_mode = CUBLAS_DEFAULT_MATH;
  cublasAtomicsMode_t atomics_mode = CUBLAS_ATOMICS_NOT_ALLOWED;
  int sm_count_target = 0;
  CUdeviceptr workspace = 0;  // memory that a real handle would take; may be 0
};

namespace torpor::emulator {

// The functions of stream_work.h, for a handle.
inline bool Accessible(const cublasContext& handle, const AccessExtent& extent) {
  return Accessible(*handle.driver, extent);
}

inline cublasStatus_t Enqueue(const cublasContext& handle,
                              std::initializer_list<AccessExtent> extents,
                              std::function<void()> work) {
  return QueueWork(*handle.driver, handle.stream, {extents.begin(), extents.size()},
                   std::move(work))
             ? CUBLAS_STATUS_SUCCESS
             : CUBLAS_STATUS_EXECUTION_FAILED;
}

// A scalar argument. In host pointer mode the constructor reads it; in device pointer mode value()
// reads device memory, and must be called in stream order.
template <typename T>
class Scalar {
 public:
  Scalar(const cublasContext& handle, const T* pointer)
      : device_(handle.pointer_mode == CUBLAS_POINTER_MODE_DEVICE ? pointer : nullptr),
        value_(device_ == nullptr && pointer != nullptr ? *pointer : T{}) {}

  T value() const { return device_ != nullptr ? *device_ : value_; }
  AccessExtent extent() const { return {device_, device_ != nullptr ? sizeof(T) : 0, false}; }

 private:
  const T* device_;
  T value_;
};

}  // namespace torpor::emulator
