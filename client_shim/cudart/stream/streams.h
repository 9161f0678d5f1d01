#pragma once

#include <cuda_runtime_api.h>

#include "client_shim/cudart/stream/stream.h"

namespace torpor::shim {

// The stream that `stream` names, ready for a command: the session is open and host functions
// that the command must follow have run.
cudaError_t UseStream(cudaStream_t stream, StreamPtr& use);

// The stream, without waiting for anything.
cudaError_t FindStream(cudaStream_t stream, StreamPtr& found);

// What comes to `stream` from now on waits for what `earlier` has been given. Both by their wire
// names, of the device in use.
cudaError_t ComeBehind(std::uint64_t stream, std::uint64_t earlier);

// All work of the device in use was done when the core counted `commands`: what queries of its
// streams find until more is enqueued.
void NoteIdleDevice(std::uint64_t commands);

// Whether all that anybody has enqueued since `stream` was idle are its copies out of pageable
// memory, which the program cannot see: the memory is its own again.
bool IsIdleButForUploads(const Stream& stream);

// Destroys every stream that the program made, whose work is done.
cudaError_t DestroyAllStreams();

}  // namespace torpor::shim
