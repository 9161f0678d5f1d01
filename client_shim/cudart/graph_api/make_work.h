#pragma once

#include <cuda_runtime_api.h>

#include "client_shim/cudart/graph/node_work.h"

// Work out of the parameters that programs give, checked as the plain calls check theirs.
namespace torpor::shim {

cudaError_t MakeKernelWork(const cudaKernelNodeParams& parameters, NodeWork& work);
cudaError_t MakeFillWork(const cudaMemsetParams& parameters, NodeWork& work);
cudaError_t MakeHostWork(const cudaHostNodeParams& parameters, NodeWork& work);
// An event record or wait.
template <typename EventWork>
cudaError_t MakeEventWork(cudaEvent_t event, NodeWork& work);
// Clones the graph.
cudaError_t MakeChildWork(cudaGraph_t graph, NodeWork& work);

}  // namespace torpor::shim
