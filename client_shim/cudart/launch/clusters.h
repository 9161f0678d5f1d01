#pragma once

#include <cuda_runtime_api.h>

#include "client_shim/cudart/launch/launch.h"
#include "client_shim/cudart/module/modules.h"

namespace torpor::shim {

// Checks the clusters of a launch of a prepared kernel: cudaErrorInvalidClusterSize.
cudaError_t CheckClusters(const ClientKernel& kernel, const Launch& launch);

// Sets the size of clusters in `flags` of wire::LaunchKernel; a size of zeros takes it away.
// cudaErrorInvalidClusterSize for a cluster larger than any device's.
cudaError_t SetClusterSize(const dim3& size, std::uint32_t& flags);
// Sets the policy by which clusters are spread over the device.
cudaError_t SetClusterPolicy(cudaClusterSchedulingPolicy policy, std::uint32_t& flags);

}  // namespace torpor::shim
