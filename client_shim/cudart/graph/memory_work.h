#pragma once

#include <cuda_runtime_api.h>

#include "client_shim/cudart/graph/node_work.h"

// The work of allocation and free nodes, checked as CUDA checks parameters of nodes.
namespace torpor::shim {

// Allocates the memory on the device that `parameters` name and stores the address there.

cudaError_t MakeAllocationWork(cudaMemAllocNodeParams& parameters, NodeWork& work);
// cudaErrorInvalidValue unless an allocation node's memory begins at `address`.
cudaError_t MakeFreeWork(void* address, NodeWork& work);

}  // namespace torpor::shim
