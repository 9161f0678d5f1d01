#include "client_shim/cudart/stream/stream_gate.h"

#include <memory>
#include <utility>

#include "client_shim/cudart/call/entry.h"
#include "client_shim/cudart/stream/capture.h"
#include "client_shim/cudart/stream/streams.h"

namespace torpor::shim {
namespace {

// A program's handle of a stream is the wire name.
cudaStream_t StreamOf(std::uint64_t handle) { return reinterpret_cast<cudaStream_t>(handle); }

// The gate for other libraries' work: captures or orders the work as the runtime would its own.
class RuntimesGate final : public StreamGate {
 public:
  bool IsCapturing(std::uint64_t stream) override {
    const CoreScope scope;
    return shim::IsCapturing(StreamOf(stream));
  }
  cudaError_t Capture(std::uint64_t stream, const Command& command,
                      std::shared_ptr<const void> needed) override {
    const CoreScope scope;
    return shim::Capture(
        StreamOf(stream),
        LibraryWork{
            command.call_id, {command.fields.begin(), command.fields.end()}, std::move(needed)});
  }
  cudaError_t Await(std::uint64_t handle) override {
    const CoreScope scope;
    const OwnCalls own_calls;
    ClientStreamPtr stream;
    const cudaError_t error = UseStream(StreamOf(handle), stream);
    // The wire name may be of a per-thread default stream that the runtime has not used yet.
    return error == cudaErrorInvalidResourceHandle ? UseStream(cudaStreamPerThread, stream) : error;
  }
};

}  // namespace

void OpenStreamGate() {
  static auto* const gate = new RuntimesGate();  // until the process ends
  Core().OfDevice(0)->SetStreamGate(gate);
}

}  // namespace torpor::shim
