#pragma once

#include <cuda_runtime_api.h>

#include <vector>

#include "client_shim/cudart/graph/node_work.h"
#include "client_shim/cudart/graph/plan.h"
#include "client_shim/cudart/stream/stream.h"
#include "proto/cuda_api/cudart_commands.h"

// What a node comes to when it runs.
namespace torpor::shim {

Runner RunnerOf(const NodeWork& work);

// The commands of work that runs on the executor.
cudaError_t EncodeWork(const NodeWork& work, std::vector<wire::GraphCommand>& commands);

// Runs work of the client in the place that it has in `stream`.
cudaError_t RunInClient(const NodeWork& work, const StreamPtr& stream);

}  // namespace torpor::shim
