#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "client_shim/core/client_core.h"

// Work that the libraries beside the runtime put on a program's streams.
namespace torpor::shim {

// The session's handle of a stream as the program names it; false if it is none of the core's
// device.
bool ResolveStream(ClientCore& core, cudaStream_t stream, std::uint64_t& handle);

// What the core's streams pass: libcudart's, which is one for all devices. Null as stream_gate().
StreamGate* GateOf(ClientCore& core);

// Enqueues a STREAM command of work on `stream`, after what the client has still to do before it;
// or has it captured where that stream is being captured.
cudaError_t EnqueueOn(ClientCore& core, std::uint64_t stream, const Command& command);

// Calls a SYNC command that waits for work on `stream`. One that is being captured cannot be waited
// for: its capture breaks.
cudaError_t CallOn(ClientCore& core, std::uint64_t stream, const Command& command,
                   CallReply& reply);

}  // namespace torpor::shim
