#pragma once

#include <cstdint>

#include "base/units.h"

namespace torpor::emulator {

struct Dim3 {
  std::uint32_t x = 1;
  std::uint32_t y = 1;
  std::uint32_t z = 1;
};

inline constexpr Dim3 kMaxBlock = {1024, 1024, 64};
inline constexpr Dim3 kMaxGrid = {0x7fffffff, 65535, 65535};
inline constexpr std::uint32_t kMaxThreadsPerBlock = 1024;
// Blocks of a cluster on every device that has clusters, and on devices of the largest clusters.
inline constexpr std::uint32_t kPortableClusterBlocks = 8;
inline constexpr std::uint32_t kMaxClusterBlocks = 16;
inline constexpr std::uint32_t kFirstClusterCapability = 90;  // 10 * major + minor

struct LaunchConfig {
  Dim3 grid;
  Dim3 block;
  Bytes dynamic_shared_bytes = 0;
  bool cooperative = false;
  Dim3 cluster = {0, 0, 0};  // in blocks; 0x0x0: as the kernel says, if anything
  const void* parameters =
      nullptr;  // KernelInfo::parameter_bytes bytes; read before Launch returns
};

// Properties of the device that a running kernel can observe.
struct DeviceTraits {
  std::uint32_t multiprocessors = 16;
  std::uint32_t compute_capability = 120;  // 10 * major + minor
  Bytes shared_bytes_per_block = 99 * kKiB;
};

}  // namespace torpor::emulator
