#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <thread>
#include <vector>

#include "client_shim/cudart/stream/capture.h"

// The state of captures, for those that begin and end them. All under GraphLock.
namespace torpor::shim {

struct CaptureSequence {
  unsigned long long id = 0;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id thread;        // that began it
  Graph* graph = nullptr;        // being built
  std::unique_ptr<Graph> owned;  // the same, unless it is the program's
  bool is_valid = true;
  std::vector<StreamPtr> streams;  // that take part, the one that began it first
  CaptureFront left;               // of streams that are gone
};
using CapturePtr = std::shared_ptr<CaptureSequence>;

// A stream's part in a capture.
struct StreamCapture {
  CapturePtr sequence;
  CaptureFront front;
  // What cudaStreamGetCaptureInfo has given away: valid until the stream's next call.
  std::vector<cudaGraphNode_t> told_nodes;
  std::vector<cudaGraphEdgeData> told_edges;
};

// Into `graph`, which is the program's, or, with null, a new one.
cudaError_t BeginCapture(const StreamPtr& stream, cudaStreamCaptureMode mode, Graph* graph,
                         CaptureFront front);
// `graph`: null unless the capture was a success.
cudaError_t EndCapture(const StreamPtr& stream, cudaGraph_t& graph);

// Whether some stream that captures is one for which the legacy stream waits.
bool LegacyDisturbsCapture();

// The thread's mode for calls that may synchronise; gives the earlier one back.
cudaStreamCaptureMode ExchangeThreadMode(cudaStreamCaptureMode mode);

}  // namespace torpor::shim
