#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <thread>
#include <vector>

#include "client_shim/cudart/stream/capture.h"

// The state of captures, for the entries that begin, end and describe captures. Call with GraphLock
// held.
namespace torpor::shim {

// A capture from cudaStreamBeginCapture to cudaStreamEndCapture, with all its streams.
struct CaptureSequence {
  unsigned long long id = 0;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id thread;        // the thread that began the capture
  Graph* graph = nullptr;        // being built
  std::unique_ptr<Graph> owned;  // `graph`, unless the program owns the graph
  bool is_valid = true;
  std::vector<ClientStreamPtr> streams;  // all participants; the first began the capture
  CaptureFront left;                     // fronts of destroyed streams
};
using CapturePtr = std::shared_ptr<CaptureSequence>;

// A stream's part in a capture.
struct StreamCapture {
  CapturePtr sequence;
  CaptureFront front;
  // Arrays returned by cudaStreamGetCaptureInfo; valid until the stream's next call.
  std::vector<cudaGraphNode_t> told_nodes;
  std::vector<cudaGraphEdgeData> told_edges;
};

// Begins a capture into the program's `graph`, or into a new graph if null. The first node comes
// behind `front`.
cudaError_t BeginCapture(const ClientStreamPtr& stream, cudaStreamCaptureMode mode, Graph* graph,
                         CaptureFront front);
// Ends the capture begun by `stream`. On success the program owns `graph`; on failure `graph` is
// null and the captured nodes are gone.
cudaError_t EndCapture(const ClientStreamPtr& stream, cudaGraph_t& graph);

// Whether the legacy stream of the device in use waits for any capturing stream.
bool LegacyDisturbsCapture();

// Sets the thread's mode for calls that may synchronise; returns the earlier mode.
cudaStreamCaptureMode ExchangeThreadMode(cudaStreamCaptureMode mode);

}  // namespace torpor::shim
