#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <vector>

#include "client_shim/cudart/graph/graph.h"
#include "client_shim/cudart/graph/node_work.h"
#include "client_shim/cudart/stream/stream.h"

// Stream capture: work for a capturing stream becomes nodes of a graph. Calls reach Capture through
// the seam in submit.h; UseStream refuses a capturing stream to every other call. Functions that
// take a cudaStream_t lock GraphLock themselves; streams that do not capture answer
// cudaErrorIllegalState, broken captures cudaErrorStreamCaptureInvalidated.
namespace torpor::shim {

struct CaptureSequence;

// The latest nodes of a capturing stream: dependencies of the stream's next node.
using CaptureFront = std::vector<GraphEdge>;

// A record of an event in a capturing stream. Guarded by GraphLock.
struct CapturedRecord {
  std::weak_ptr<CaptureSequence> capture;
  CaptureFront front;
};

// Whether the stream takes part in a capture, valid or broken. Costs one atomic load while the
// process has no capture.
bool IsCapturing(cudaStream_t stream);

// Adds a node behind the stream's front.
cudaError_t Capture(cudaStream_t stream, NodeWork work);
// Notes the stream's front as the meaning of an event.
cudaError_t CaptureRecord(cudaStream_t stream, CapturedRecord& record);
// Puts the stream behind the record's nodes. A stream outside any capture joins the record's
// capture.
cudaError_t CaptureWait(cudaStream_t stream, const CapturedRecord& record);

// Breaks the stream's capture. Returns `error` if the capture was valid.
cudaError_t InvalidateCapture(cudaStream_t stream, cudaError_t error);
// Breaks the capture of the record, if the capture has not ended.
void InvalidateCaptureOf(const CapturedRecord& record);

// Called before commands that no graph can hold: breaks every capture that work on `stream` would
// disturb and returns CUDA's error; cudaSuccess if no capture is concerned.
cudaError_t RefuseCaptured(const ClientStreamPtr& stream);

// Takes a stream out of its capture before the stream is destroyed. The captured nodes stay and
// must still be joined. Refuses the stream that began the capture.
cudaError_t LeaveCapture(const ClientStreamPtr& stream);
// Ends the part of a thread's default stream with the thread, and any capture begun by the stream.
void AbandonCapture(const ClientStreamPtr& stream);
// Ends all captures of the device in use and drops their graphs (cudaDeviceReset).
void AbandonCaptures();

// Called by entries that may synchronise implicitly. Breaks captures and returns
// cudaErrorStreamCaptureUnsupported while this thread captures, or any thread captures in global
// mode, unless this thread is in relaxed mode.
cudaError_t RefuseUnsafe();

}  // namespace torpor::shim
