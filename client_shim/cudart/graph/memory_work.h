#pragma once

#include <cuda_runtime_api.h>

#include "client_shim/cudart/graph/node_work.h"

namespace torpor::shim {

cudaError_t MakeAllocationWork(cudaMemAllocNodeParams& parameters, NodeWork& work);
cudaError_t MakeFreeWork(void* address, NodeWork& work);

}  // namespace torpor::shim
