#pragma once

#include <functional>

#include "client_shim/cudart/stream/stream.h"

// Functions of the program that run in stream order (cudaLaunchHostFunc, cudaStreamAddCallback).
// They run on one thread of the shim. Commands that are issued later and that CUDA orders behind
// the function are held back in the calling thread until it has run: those of the same stream, of
// the legacy stream if this is a blocking one, and of every blocking stream if this is the legacy
// one. A completion slot tells when the stream has come to it.
namespace torpor::shim {

// `run` gets the stream's state: cudaSuccess or the session's sticky error.
cudaError_t QueueHostFunction(const StreamPtr& stream, std::function<void(cudaError_t)> run);

// Waits until the functions that a command of `stream` must follow have run. Cheap where none is
// queued. cudaErrorNotPermitted inside a host function, which may not call CUDA.
cudaError_t AwaitHostFunctions(const Stream& stream);
// Likewise for what waits for the whole device.
cudaError_t AwaitAllHostFunctions();

}  // namespace torpor::shim
