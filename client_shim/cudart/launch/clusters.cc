#include "client_shim/cudart/launch/clusters.h"

#include <algorithm>

#include "client_shim/cudart/device/devices.h"
#include "proto/cuda_api/launch_cluster.h"

namespace torpor::shim {
namespace {

// Blocks of a cluster on every device that has clusters, and on devices of the largest clusters.
constexpr std::uint32_t kPortableBlocks = 8;
constexpr std::uint32_t kMaxBlocks = 16;

bool IsGiven(const dim3& size) { return size.x != 0 || size.y != 0 || size.z != 0; }

bool AreEqual(const dim3& a, const dim3& b) { return a.x == b.x && a.y == b.y && a.z == b.z; }

dim3 SizeIn(std::uint32_t flags) {
  const wire::LaunchCluster cluster = wire::ClusterOf(flags);
  return {cluster.x, cluster.y, cluster.z};
}

// The size given at compile time.
dim3 CompiledSize(const ClientKernel& kernel) {
  const auto axis = [&](std::size_t i) {
    return static_cast<unsigned>(std::max(kernel.entry.cluster[i], 0));
  };
  return {axis(0), axis(1), axis(2)};
}

dim3 RequiredSize(const ClientKernel& kernel) {
  const auto& required = kernel.here().required_cluster;
  return {required[0].load(), required[1].load(), required[2].load()};
}

bool Divides(const dim3& size, const dim3& grid) {
  return grid.x % size.x == 0 && grid.y % size.y == 0 && grid.z % size.z == 0;
}

}  // namespace

cudaError_t CheckClusters(const ClientKernel& kernel, const Launch& launch) {
  const dim3 given = SizeIn(launch.flags);
  const dim3 compiled = CompiledSize(kernel);
  const dim3 required = IsGiven(compiled) ? compiled : RequiredSize(kernel);
  const dim3 size = IsGiven(given) ? given : required;
  if (!IsGiven(size))
    return kernel.entry.needs_cluster != 0 ? cudaErrorInvalidClusterSize : cudaSuccess;
  if (IsGiven(required) && !AreEqual(size, required)) return cudaErrorInvalidClusterSize;
  // Each axis is small enough for the product.
  const bool inside =
      std::min({size.x, size.y, size.z}) >= 1 && std::max({size.x, size.y, size.z}) <= kMaxBlocks;
  const std::uint32_t max = kernel.here().allows_large_clusters ? kMaxBlocks : kPortableBlocks;
  if (!inside || size.x * size.y * size.z > max || !Divides(size, launch.grid))
    return cudaErrorInvalidClusterSize;
  return DeviceAttribute(cudaDevAttrClusterLaunch) != 0 ? cudaSuccess : cudaErrorInvalidClusterSize;
}

cudaError_t SetClusterSize(const dim3& size, std::uint32_t& flags) {
  if (std::max({size.x, size.y, size.z}) > kMaxBlocks) return cudaErrorInvalidClusterSize;
  flags = (flags & ~wire::kClusterSizeBits) | wire::FlagsOf({size.x, size.y, size.z, 0});
  return cudaSuccess;
}

cudaError_t SetClusterPolicy(cudaClusterSchedulingPolicy policy, std::uint32_t& flags) {
  const auto number = static_cast<std::uint32_t>(policy);
  if (number > cudaClusterSchedulingPolicyLoadBalancing) return cudaErrorInvalidValue;
  flags = (flags & ~wire::kClusterPolicyBits) | wire::FlagsOf({0, 0, 0, number});
  return cudaSuccess;
}

}  // namespace torpor::shim
