#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "proto/cuda_api/call_memory.h"
#include "proto/cuda_api/cublas_scalar.h"

// Arguments of a real call of a library.
namespace torpor::cuda_api {

// Storage from which cuBLAS reads numbers by value, aligned for every type.
class ScalarArgument {
 public:
  template <std::size_t kBytes>
  ScalarArgument(CallMemory& memory, const wire::CublasNumbers<kBytes>& numbers,
                 std::uint64_t bytes) {
    std::copy(numbers.value.begin(), numbers.value.end(), value_.begin());
    if (numbers.address == 0) return;
    device_ = memory.Resolve(numbers.address, bytes, Access::kRead);
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
  // Ignores the address if `bytes` is 0.
  DeviceArgument(CallMemory& memory, std::uint64_t address, std::uint64_t bytes, Access access);

  bool ok() const { return ok_; }
  template <typename T>
  T* as() const {
    return static_cast<T*>(pointer_);
  }

 private:
  void* pointer_ = nullptr;
  bool ok_ = true;
};

}  // namespace torpor::cuda_api
