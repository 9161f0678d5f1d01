#pragma once

#include <functional>

#include "client_shim/cudart/stream/stream.h"

// Functions of the program that run in stream order (cudaLaunchHostFunc, cudaStreamAddCallback).
// A single thread of the shim runs all functions. A completion slot shows when the stream reaches a
// function. Later commands that CUDA orders behind the function wait in their calling thread until
// the function has run: commands of the same stream, of the legacy stream if the function's stream
// is blocking, and of every blocking stream if the function's stream is the legacy stream.
namespace torpor::shim {

// Queues `run` behind the work of `stream`. `run` gets cudaSuccess or the session's sticky error.
// cudaErrorMemoryAllocation without a free completion slot.
cudaError_t QueueHostFunction(const ClientStreamPtr& stream, std::function<void(cudaError_t)> run);

// Blocks until every function has run that a command of `stream` must follow. Costs an atomic load
// while no function is queued. cudaErrorNotPermitted inside a host function, where CUDA forbids
// calls.
cudaError_t AwaitHostFunctions(const ClientStream& stream);
// The same before a wait for the whole device: blocks until all functions have run.
cudaError_t AwaitAllHostFunctions();

}  // namespace torpor::shim
