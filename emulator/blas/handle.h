#pragma once

#include <cublas_v2.h>
#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <functional>

#include "emulator/blas/driver_calls.h"

// What a cublasHandle_t points to.
struct cublasContext {
  const torpor::emulator::DriverCalls* driver = nullptr;
  CUstream stream = nullptr;
  cublasPointerMode_t pointer_mode = CUBLAS_POINTER_MODE_HOST;
  cublasMath_t math_mode = CUBLAS_DEFAULT_MATH;
  cublasAtomicsMode_t atomics_mode = CUBLAS_ATOMICS_NOT_ALLOWED;
  int sm_count_target = 0;
};

namespace torpor::emulator {

// A range that a call is going to touch; empty ranges are always legal. One that reaches beyond
// what 64 bits address has UINT64_MAX bytes, or wraps, and is never accessible.
struct Extent {
  const void* address = nullptr;
  std::uint64_t bytes = 0;
  bool written = false;
};

// A vector of `count` elements `stride` apart, which may be negative, as BLAS stores it: `address`
// is its lowest element.
Extent VectorExtent(const void* address, std::int64_t count, std::int64_t stride,
                    std::size_t element_bytes, bool written);
// A column-major matrix, `count` times with `batch_stride` elements between the beginnings.
Extent MatrixExtent(const void* address, std::int64_t rows, std::int64_t columns,
                    std::int64_t leading, std::size_t element_bytes, bool written,
                    std::int64_t batch_stride = 0, std::int64_t count = 1);

// Whether the device may touch all of `extent`. Without this a wrong address in a call would take
// down the process that does the work.
bool Accessible(const cublasContext& handle, const Extent& extent);

// Queues `work` on the handle's stream if all `extents` are accessible.
cublasStatus_t Enqueue(const cublasContext& handle, std::initializer_list<Extent> extents,
                       std::function<void()> work);

// A scalar argument: read now in host pointer mode, in stream order in device pointer mode.
template <typename T>
class Scalar {
 public:
  Scalar(const cublasContext& handle, const T* pointer)
      : device_(handle.pointer_mode == CUBLAS_POINTER_MODE_DEVICE ? pointer : nullptr),
        value_(device_ == nullptr && pointer != nullptr ? *pointer : T{}) {}

  T value() const { return device_ != nullptr ? *device_ : value_; }
  Extent extent() const { return {device_, device_ != nullptr ? sizeof(T) : 0, false}; }

 private:
  const T* device_;
  T value_;
};

}  // namespace torpor::emulator
