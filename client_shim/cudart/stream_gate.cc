#include "client_shim/cudart/graph/library_capture.h"

#include "client_shim/cudart/entry.h"
#include "client_shim/cudart/graph/capture.h"

namespace torpor::shim {
namespace {

// Handles of streams are their addresses to programs too.
cudaStream_t StreamOf(std::uint64_t handle) { return reinterpret_cast<cudaStream_t>(handle); }

class LibraryCapture final : public CaptureSink {
 public:
  bool IsCapturing(std::uint64_t stream) override { return shim::IsCapturing(StreamOf(stream)); }
  cudaError_t Capture(std::uint64_t stream, const Command& command) override {
    return shim::Capture(
        StreamOf(stream),
        LibraryWork{command.call_id, {command.fields.begin(), command.fields.end()}});
  }
  cudaError_t Refuse(std::uint64_t stream) override {
    return InvalidateCapture(StreamOf(stream), cudaErrorStreamCaptureUnsupported);
  }
};

}  // namespace

void CaptureOtherLibraries() {
  static auto* const capture = new LibraryCapture();  // until the process ends
  Core().SetCaptureSink(capture);
}

}  // namespace torpor::shim
