#include "server/executor/runtime/launch_attributes.h"

#include "proto/cuda_api/cudart_commands.h"
#include "proto/cuda_api/launch_cluster.h"

namespace torpor::executor {

LaunchAttributes::LaunchAttributes(const std::array<std::uint32_t, 3>& grid,
                                   const std::array<std::uint32_t, 3>& block,
                                   std::uint32_t shared_bytes, std::uint32_t flags,
                                   CUstream stream) {
  config_.gridDimX = grid[0];
  config_.gridDimY = grid[1];
  config_.gridDimZ = grid[2];
  config_.blockDimX = block[0];
  config_.blockDimY = block[1];
  config_.blockDimZ = block[2];
  config_.sharedMemBytes = shared_bytes;
  config_.hStream = stream;
  config_.attrs = attributes_.data();
  if ((flags & wire::kLaunchCooperative) != 0) {
    Add(CU_LAUNCH_ATTRIBUTE_COOPERATIVE).value.cooperative = 1;
  }
  const wire::LaunchCluster cluster = wire::ClusterOf(flags);
  if (cluster.is_given()) {
    auto& size = Add(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION).value.clusterDim;
    size.x = cluster.x;
    size.y = cluster.y;
    size.z = cluster.z;
  }
  if (cluster.policy != 0) {
    Add(CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE)
        .value.clusterSchedulingPolicyPreference =
        static_cast<CUclusterSchedulingPolicy>(cluster.policy);
  }
}

CUlaunchAttribute& LaunchAttributes::Add(CUlaunchAttributeID id) {
  CUlaunchAttribute& added = attributes_[config_.numAttrs++];
  added.id = id;
  return added;
}

}  // namespace torpor::executor
