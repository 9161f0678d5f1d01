#pragma once

#include <cuda_runtime_api.h>

#include "client_shim/cudart/stream/stream.h"

namespace torpor::shim {

// Finds the stream, turns to the stream's device and makes the stream ready for a command: the
// session is open, no capture is disturbed, and preceding host functions have run.
// cudaErrorInvalidResourceHandle for an unknown stream; errors of RefuseCaptured.
cudaError_t UseStream(cudaStream_t stream, ClientStreamPtr& use);

// Finds the stream and turns to the stream's device, without waiting or regard to captures.
cudaError_t FindStream(cudaStream_t stream, ClientStreamPtr& found);

// Orders later work of `stream` behind all work given to `earlier` so far. Both are wire names of
// streams of the device in use; a destroyed `earlier` makes the caller wait for the device.
cudaError_t ComeBehind(std::uint64_t stream, std::uint64_t earlier);

// Notes that the device in use was idle when the core had counted `commands`. Queries of the
// device's streams answer from the note until the core enqueues more.
void NoteIdleDevice(std::uint64_t commands);

// Whether the core has enqueued nothing since `stream` was idle but the stream's copies out of
// pageable memory. Such copies have read their source and so need no wait.
bool IsIdleButForUploads(const ClientStream& stream);

// Destroys every stream that the program created on the device in use. Call with the device idle.
cudaError_t DestroyAllStreams();

}  // namespace torpor::shim
