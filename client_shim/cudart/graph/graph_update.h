#pragma once

#include <cuda_runtime_api.h>

#include "client_shim/cudart/graph/graph.h"

namespace torpor::shim {

// Gives every node of `own` the work of the node of `given` that was added in the same place.
// False, and nothing is changed, if their structure or their nodes' kinds differ: `info` says
// where.
bool UpdateWork(Graph& own, const Graph& given, cudaGraphExecUpdateResultInfo& info);

}  // namespace torpor::shim
