#pragma once

#include <cstdint>

// The clusters of a launch, inside LaunchKernel::flags.
namespace torpor::wire {

// The size of clusters in blocks, 0x0x0 if the launch names none, and a
// cudaClusterSchedulingPolicy.
struct LaunchCluster {
  std::uint32_t x = 0;
  std::uint32_t y = 0;
  std::uint32_t z = 0;
  std::uint32_t policy = 0;

  bool is_given() const { return x != 0 || y != 0 || z != 0; }
};

// The bits of LaunchKernel::flags that hold a size, and a policy.
inline constexpr std::uint32_t kClusterSizeBits = 0x7fffU << 8;
inline constexpr std::uint32_t kClusterPolicyBits = 3U << 23;

// Axes are below 32, which no device's clusters reach, and policies below 4.
constexpr std::uint32_t FlagsOf(const LaunchCluster& cluster) {
  return cluster.x << 8 | cluster.y << 13 | cluster.z << 18 | cluster.policy << 23;
}
constexpr LaunchCluster ClusterOf(std::uint32_t flags) {
  return {flags >> 8 & 31, flags >> 13 & 31, flags >> 18 & 31, flags >> 23 & 3};
}

}  // namespace torpor::wire
