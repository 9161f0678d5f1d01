#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <vector>

#include "client_shim/cudart/graph/graph.h"
#include "client_shim/cudart/graph/node_work.h"
#include "client_shim/cudart/stream/stream.h"

// Captures: what is sent to a stream that takes part in one becomes nodes of a graph. An entry
// that can be captured asks IsCapturing and hands its work to Capture; every other one is refused
// by UseStream.
namespace torpor::shim {

struct CaptureSequence;

// What comes next in a capturing stream comes behind these.
using CaptureFront = std::vector<GraphEdge>;

// An event that was recorded in a capturing stream. Guarded by GraphLock.
struct CapturedRecord {
  std::weak_ptr<CaptureSequence> capture;
  CaptureFront front;
};

// Whether the stream takes part in a capture, be it a broken one. Next to nothing while there is
// no capture.
bool IsCapturing(cudaStream_t stream);

// Of a stream of which IsCapturing is true.
cudaError_t Capture(cudaStream_t stream, NodeWork work);
// Also gives the new node.
cudaError_t Capture(cudaStream_t stream, NodeWork work, GraphNode*& node);
cudaError_t CaptureRecord(cudaStream_t stream, CapturedRecord& record);

// The stream, which may not capture yet, comes behind what the event stands for.
cudaError_t CaptureWait(cudaStream_t stream, const CapturedRecord& record);

// Breaks the stream's capture. Gives `error` back.
cudaError_t InvalidateCapture(cudaStream_t stream, cudaError_t error);

// For a call that cannot be captured: breaks the captures that it would disturb, and says so.
cudaError_t RefuseCaptured(const StreamPtr& stream);
// The stream is about to be destroyed. What it has captured stays, and must still be joined. A
// stream that began a capture is refused.
cudaError_t LeaveCapture(const StreamPtr& stream);
// The stream ends with its thread: a capture that it began does too.
void AbandonCapture(const StreamPtr& stream);
// Those of the device in use end, and their graphs with them (cudaDeviceReset).
void AbandonCaptures();
// For a call that may synchronise without a word: refused while this thread captures, or any
// other in global mode, unless this thread has said that it knows (relaxed mode).
cudaError_t RefuseUnsafe();

}  // namespace torpor::shim
