#include "client_shim/stream_work.h"

namespace torpor::shim {

bool ResolveStream(ClientCore& core, cudaStream_t stream, std::uint64_t& handle) {
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

StreamGate* GateOf(ClientCore& core) { return core.OfDevice(0)->stream_gate(); }

cudaError_t EnqueueOn(ClientCore& core, std::uint64_t stream, const Command& command) {
  if (StreamGate* const gate = GateOf(core)) {
    if (gate->IsCapturing(stream)) return gate->Capture(stream, command, nullptr);
    if (const cudaError_t error = gate->Await(stream)) return error;
  }
  return core.Enqueue(command);
}

cudaError_t CallOn(ClientCore& core, std::uint64_t stream, const Command& command,
                   CallReply& reply) {
  if (StreamGate* const gate = GateOf(core))
    if (const cudaError_t error = gate->Await(stream)) return error;
  return core.Call(command, reply);
}

}  // namespace torpor::shim
