#pragma once

#include <cuda_runtime_api.h>

#include "client_shim/cudart/graph/node_work.h"

// Work of nodes from programs' parameters, checked like the plain calls. Functions that need a
// session open one.
namespace torpor::shim {

cudaError_t MakeKernelWork(const cudaKernelNodeParams& parameters, NodeWork& work);
cudaError_t MakeFillWork(const cudaMemsetParams& parameters, NodeWork& work);
cudaError_t MakeHostWork(const cudaHostNodeParams& parameters, NodeWork& work);
// `EventWork`: EventRecordWork or EventWaitWork.
template <typename EventWork>
cudaError_t MakeEventWork(cudaEvent_t event, NodeWork& work);
// Clones the graph. cudaErrorInvalidValue for an unknown handle. Call with GraphLock held.
cudaError_t MakeChildWork(cudaGraph_t graph, NodeWork& work);

}  // namespace torpor::shim
