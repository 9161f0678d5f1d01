#pragma once

#include <cudnn.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "proto/cuda_api/call_outcome.h"
#include "proto/cuda_api/cudnn_environment.h"

// Arguments and result of a real cuDNN call. Used by generated calls only.
namespace torpor::cuda_api {

// Storage from which cuDNN reads a number.
class HostScalarArgument {
 public:
  explicit HostScalarArgument(const std::array<std::uint8_t, 8>& value) {
    std::copy(value.begin(), value.end(), value_.begin());
  }
  const void* get() const { return value_.data(); }

 private:
  alignas(8) std::array<std::uint8_t, 8> value_{};
};

// A call of the real library.
class CudnnInvocation {
 public:
  CudnnInvocation(CudnnEnvironment& environment, const char* symbol, bool exists,
                  std::uint64_t stream);

  template <typename Value>
  auto Real(const Value& value) {
    decltype(environment_.Real(value)) real = nullptr;
    if (real_ == nullptr) return real;
    real = environment_.Real(value);
    described_ = described_ && real != nullptr;
    return real;
  }

  bool ok() const { return real_ != nullptr && described_; }
  CallStatus refusal() const;  // unless ok
  cudnnHandle_t handle() const { return real_; }
  CallStatus Done(cudnnStatus_t status) const;

 private:
  CudnnEnvironment& environment_;
  const char* const symbol_;
  const bool exists_;
  bool described_ = true;
  cudnnHandle_t real_ = nullptr;
};

}  // namespace torpor::cuda_api
