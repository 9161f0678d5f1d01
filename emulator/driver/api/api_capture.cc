// Capturing streams, and launching graphs; compiled twice, see default_stream.h.
#include <memory>
#include <utility>
#include <vector>

#include "emulator/driver/api/api.h"
#include "emulator/driver/api/default_stream.h"
#include "emulator/driver/submission/graph.h"

using namespace torpor::emulator;  // NOLINT: this file only defines the C interface

namespace {

// Makes a graph of the work that the stream's capture has kept; the capture is over in any case.
CUresult EndCapture(Driver& driver, const StreamTarget& target, CUgraph& graph) {
  const auto capture = target.stream->capture();
  if (capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (capture->origin() != target.stream.get()) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  const bool is_valid = capture->is_valid();
  auto work = std::make_shared<const std::vector<Capture::Work>>(capture->End());
  if (!is_valid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  graph = driver.graphs().Create(std::make_shared<CapturedGraph>(CapturedGraph{std::move(work)}));
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode) {
  return OnStream(OrDefault(stream), [&](const StreamTarget& target) {
    if (target.stream == target.context->legacy_stream()) {
      return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    if (target.stream->capture() != nullptr) return CUDA_ERROR_ILLEGAL_STATE;
    auto capture = std::make_shared<Capture>(target.stream.get(), mode);
    capture->Join(target.stream);
    target.stream->set_capture(std::move(capture));
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  return OnStream(OrDefault(stream), [&](const StreamTarget& target) {
    if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto capture = target.stream->capture();
    *status = capture == nullptr    ? CU_STREAM_CAPTURE_STATUS_NONE
              : capture->is_valid() ? CU_STREAM_CAPTURE_STATUS_ACTIVE
                                    : CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  return OnStream(OrDefault(stream), [&](const StreamTarget& target) {
    if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *graph = nullptr;
    return EndCapture(Driver::Get(), target, *graph);
  });
}

CUresult CUDAAPI cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  return OnStream(OrDefault(stream), [&](const StreamTarget& target) {
    if (const auto capture = target.stream->capture()) {
      capture->Invalidate();
      return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    const CapturedGraph* found = Driver::Get().graph_execs().Get(exec);
    return found == nullptr ? CUDA_ERROR_INVALID_VALUE : LaunchGraph(target, found->work);
  });
}

}  // extern "C"
