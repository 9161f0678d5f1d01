#pragma once

#include <cublas_api.h>

#include <array>
#include <cstdint>

#include "proto/cuda_api/call_outcome.h"
#include "proto/cuda_api/cublas_environment.h"
#include "proto/cuda_api/device_arguments.h"

// Arguments and result of a real cuBLAS call. Used by generated calls only.
namespace torpor::cuda_api {

// Room for an answered result, aligned for every type.
class HostResult {
 public:
  template <typename T>
  T* as() {
    return reinterpret_cast<T*>(value_.data());
  }
  const std::array<std::uint8_t, 16>& value() const { return value_; }

 private:
  alignas(16) std::array<std::uint8_t, 16> value_{};
};

constexpr cublasPointerMode_t ModeOf(std::uint64_t scalar_address) {
  return scalar_address == 0 ? CUBLAS_POINTER_MODE_HOST : CUBLAS_POINTER_MODE_DEVICE;
}

// A call of the real library.
class CublasInvocation {
 public:
  CublasInvocation(CublasEnvironment& environment, const char* symbol, bool exists,
                   std::uint64_t handle, cublasPointerMode_t mode);

  bool ok() const { return real_ != nullptr; }
  CallStatus refusal() const;  // unless ok
  cublasHandle_t handle() const { return real_; }
  CallStatus Done(cublasStatus_t status) const;

 private:
  const char* const symbol_;
  const bool exists_;
  cublasHandle_t real_ = nullptr;
};

}  // namespace torpor::cuda_api
