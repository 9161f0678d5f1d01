#pragma once

#include <cuda_runtime_api.h>

#include "client_shim/cudart/stream.h"

namespace torpor::shim {

// What cudaEventRecord and cudaStreamWaitEvent do on a stream that is ready for a command.
cudaError_t RecordEvent(cudaEvent_t event, const Stream& stream);
cudaError_t AwaitEvent(cudaEvent_t event, const Stream& stream);

// cudaErrorInvalidResourceHandle if there is no such event.
cudaError_t CheckEvent(cudaEvent_t event);

// Destroys every event that the program made.
cudaError_t DestroyAllEvents();

}  // namespace torpor::shim
