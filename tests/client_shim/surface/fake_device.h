#pragma once

#include <cuda.h>

#include <cstdint>

#include "proto/wire/control_messages.h"

// A session's one device, and where its memory lies.
namespace torpor::shim {

inline constexpr std::uint64_t kDevice = 0x2000'0000'0000;
inline constexpr std::uint64_t kHost = 0x2100'0000'0000;
inline constexpr std::uint64_t kRangeBytes = 1 << 20;
inline constexpr std::uint64_t kBytes = 4096;  // of either allocation

inline void* At(std::uint64_t address) { return reinterpret_cast<void*>(address); }

inline wire::HelloReply OneDevice() {
  wire::HelloReply hello;
  hello.device_base = kDevice;
  hello.device_bytes = kRangeBytes;
  hello.host_base = kHost;
  hello.host_bytes = kRangeBytes;
  wire::DeviceDescription& device = hello.devices.emplace_back();
  device.name = "Fake GPU";
  device.total_bytes = kRangeBytes;
  device.driver_version = 13'000;
  device.pci_bus_id = "0000:0a:00.0";
  device.attributes.resize(CU_DEVICE_ATTRIBUTE_MAX);
  const auto set = [&](CUdevice_attribute attribute, int value) {
    device.attributes[static_cast<std::size_t>(attribute)] = value;
  };
  for (const auto dimension :
       {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y,
        CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z})
    set(dimension, 65'535);
  for (const auto dimension :
       {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y,
        CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK})
    set(dimension, 1024);
  set(CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32);
  set(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 12);
  return hello;
}

}  // namespace torpor::shim
