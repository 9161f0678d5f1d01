#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "client_shim/core/client_core.h"

// Work of the libraries beside the runtime on a program's streams.
namespace torpor::shim {

// Finds the session's handle of the program's stream; false for a stream of another device or an
// unknown stream.
bool ResolveStream(ClientCore& core, cudaStream_t stream, std::uint64_t& handle);

// The gate in front of the core's streams, one for all devices; null as ClientCore::stream_gate().
StreamGate* GateOf(ClientCore& core);

// Enqueues a STREAM command on `stream` behind the client's own pending work, or captures the
// command if the stream captures.
cudaError_t EnqueueOn(ClientCore& core, std::uint64_t stream, const Command& command);

// Calls a SYNC command that waits for work on `stream`. A capturing stream cannot be waited for:
// its capture becomes invalid.
cudaError_t CallOn(ClientCore& core, std::uint64_t stream, const Command& command,
                   CallReply& reply);

}  // namespace torpor::shim
