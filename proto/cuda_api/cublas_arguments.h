#pragma once

#include <cublas_api.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "proto/cuda_api/call_outcome.h"
#include "proto/cuda_api/cublas_environment.h"
#include "proto/cuda_api/cublas_scalar.h"

// The arguments of one cuBLAS call, made real: used by the generated calls only.
namespace torpor::cuda_api {

// Keeps by-value numbers where cuBLAS can read them, aligned for every type.
class ScalarArgument {
 public:
  template <std::size_t kBytes>
  ScalarArgument(CublasEnvironment& environment, const wire::CublasNumbers<kBytes>& numbers,
                 std::uint64_t bytes) {
    std::copy(numbers.value.begin(), numbers.value.end(), value_.begin());
    if (numbers.address == 0) return;
    device_ = environment.Resolve(numbers.address, bytes, Access::kRead);
    ok_ = device_ != nullptr;
  }

  bool ok() const { return ok_; }
  template <typename T>
  const T* as() const {
    return static_cast<const T*>(device_ ? device_ : value_.data());
  }

 private:
  alignas(16) std::array<std::uint8_t, sizeof(wire::CublasRotation::value)> value_{};
  const void* device_ = nullptr;
  bool ok_ = true;
};

class DeviceArgument {
 public:
  // Nothing is looked at where `bytes` is 0.
  DeviceArgument(CublasEnvironment& environment, std::uint64_t address, std::uint64_t bytes,
                 Access access);

  bool ok() const { return ok_; }
  template <typename T>
  T* as() const {
    return static_cast<T*>(pointer_);
  }

 private:
  void* pointer_ = nullptr;
  bool ok_ = true;
};

// Where a result that is answered is put, aligned for every type.
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

CallStatus NonsenseArguments(const char* symbol);
CallStatus ForeignMemory(const char* symbol);

// One call of the real library.
class CublasInvocation {
 public:
  CublasInvocation(CublasEnvironment& environment, const char* symbol, bool exists,
                   std::uint64_t handle, cublasPointerMode_t mode);

  bool ok() const { return real_ != nullptr; }
  CallStatus refusal() const;  // where not ok
  cublasHandle_t handle() const { return real_; }
  CallStatus Done(cublasStatus_t status) const;

 private:
  const char* const symbol_;
  const bool exists_;
  cublasHandle_t real_ = nullptr;
};

}  // namespace torpor::cuda_api
