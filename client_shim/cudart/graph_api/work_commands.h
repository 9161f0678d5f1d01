#pragma once

#include <cuda_runtime_api.h>

#include <vector>

#include "client_shim/cudart/graph/node_work.h"
#include "client_shim/cudart/graph/plan.h"
#include "client_shim/cudart/stream/stream.h"
#include "proto/cuda_api/cudart_commands.h"

// Running a node's work: as commands on the executor, or in the client.
namespace torpor::shim {

// Chooses where the work runs, from the present allocations. Call with the session open.
Runner RunnerOf(const NodeWork& work);

// Encodes executor work as commands, in order. Empty for work that only orders others.
cudaError_t EncodeWork(const NodeWork& work, std::vector<wire::GraphCommand>& commands);

// Runs client work in the order of `stream`.
cudaError_t RunInClient(const NodeWork& work, const ClientStreamPtr& stream);

}  // namespace torpor::shim
