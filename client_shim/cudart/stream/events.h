#pragma once

#include <cuda_runtime_api.h>

#include "client_shim/cudart/stream/shared_events.h"
#include "client_shim/cudart/stream/stream.h"

namespace torpor::shim {

// What cudaEventRecord and cudaStreamWaitEvent do on a stream that is ready for a command.
cudaError_t RecordEvent(cudaEvent_t event, const Stream& stream);
cudaError_t AwaitEvent(cudaEvent_t event, const Stream& stream);

// For a graph's node: cudaErrorInvalidResourceHandle if there is no such event,
// cudaErrorNotSupported if it is shared among processes.
cudaError_t CheckEvent(cudaEvent_t event);

// What lets other processes open an event that this one has created with cudaEventInterprocess;
// cudaErrorInvalidResourceHandle for any other.
cudaError_t FindSharedEvent(cudaEvent_t event, SharedEvent& shared);
// An event of the device in use; CUDA's error if it is this process's own, or no process has it.
cudaError_t OpenSharedEvent(const SharedEvent& shared, cudaEvent_t& event);

// Destroys every event that the program made.
cudaError_t DestroyAllEvents();

}  // namespace torpor::shim
