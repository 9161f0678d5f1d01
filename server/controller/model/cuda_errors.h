#pragma once

#include <cstdint>

// Values of cudaError_t that the daemon gives to clients. They are part of CUDA's ABI; torpord is
// built without CUDA's headers.
namespace torpor::server {

inline constexpr std::int32_t kCudaSuccess = 0;
inline constexpr std::int32_t kCudaErrorInvalidValue = 1;
inline constexpr std::int32_t kCudaErrorMemoryAllocation = 2;
inline constexpr std::int32_t kCudaErrorInsufficientDriver = 35;
inline constexpr std::int32_t kCudaErrorDevicesUnavailable = 46;
inline constexpr std::int32_t kCudaErrorDeviceUninitialized = 201;
inline constexpr std::int32_t kCudaErrorInvalidResourceHandle = 400;
inline constexpr std::int32_t kCudaErrorNotPermitted = 800;

}  // namespace torpor::server
