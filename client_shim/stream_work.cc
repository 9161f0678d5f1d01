#include "client_shim/stream_work.h"

namespace torpor::shim {

bool ResolveStream(cudaStream_t stream, std::uint64_t& handle) {
  ClientCore& core = *torpor_client_core();
  if (!stream || stream == cudaStreamLegacy) {
    handle = 0;
    return true;
  }
  if (stream == cudaStreamPerThread) {
    handle = core.PerThreadStream();
    return true;
  }
  handle = reinterpret_cast<std::uint64_t>(stream);
  return KindOf(handle) == HandleKind::kStream && core.IsLive(handle);
}

cudaError_t EnqueueOn(std::uint64_t stream, const Command& command) {
  ClientCore& core = *torpor_client_core();
  if (StreamGate* const gate = core.stream_gate()) {
    if (gate->IsCapturing(stream)) return gate->Capture(stream, command, nullptr);
    if (const cudaError_t error = gate->Await(stream)) return error;
  }
  return core.Enqueue(command);
}

cudaError_t CallOn(std::uint64_t stream, const Command& command, CallReply& reply) {
  ClientCore& core = *torpor_client_core();
  if (StreamGate* const gate = core.stream_gate())
    if (const cudaError_t error = gate->Await(stream)) return error;
  return core.Call(command, reply);
}

}  // namespace torpor::shim
