#pragma once

#include <cuda_runtime_api.h>

#include "client_shim/cudart/stream/shared_events.h"
#include "client_shim/cudart/stream/stream.h"

// Events. The functions turn to the event's device; any thread may call.
namespace torpor::shim {

// cudaEventRecord and cudaStreamWaitEvent without captures, on a stream ready for a command.
cudaError_t RecordEvent(cudaEvent_t event, const ClientStream& stream);
cudaError_t AwaitEvent(cudaEvent_t event, const ClientStream& stream);

// Checks an event for a graph's node: cudaErrorInvalidResourceHandle for an unknown event,
// cudaErrorNotSupported for an event shared among processes.
cudaError_t CheckEvent(cudaEvent_t event);

// Gives the identity under which other processes open an event. cudaErrorInvalidResourceHandle
// unless this process created the event with cudaEventInterprocess.
cudaError_t FindSharedEvent(cudaEvent_t event, SharedEventSlots& shared);
// Opens another process's event for the device in use. cudaErrorDeviceUninitialized for an event of
// this process; the executor's error if no process of the function has the event.
cudaError_t OpenSharedEvent(const SharedEventSlots& shared, cudaEvent_t& event);

// Destroys every event of the device in use (cudaDeviceReset).
cudaError_t DestroyAllEvents();

}  // namespace torpor::shim
