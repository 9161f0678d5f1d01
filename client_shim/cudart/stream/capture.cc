#include "client_shim/cudart/stream/capture.h"

#include <algorithm>
#include <atomic>
#include <unordered_set>
#include <utility>

#include "client_shim/cudart/call/entry.h"
#include "client_shim/cudart/graph/graph_lock.h"
#include "client_shim/cudart/stream/capture_sequence.h"
#include "client_shim/cudart/stream/stream_gate.h"
#include "client_shim/cudart/stream/streams.h"

namespace torpor::shim {
namespace {

// The number of captures, for a check without a lock on the path of a launch.
std::atomic<int> captures_running{0};
thread_local cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;

std::vector<CapturePtr>& TheCaptures() {
  static auto* const captures = new std::vector<CapturePtr>();
  return *captures;
}

bool AnyCapture() { return captures_running.load(std::memory_order_acquire) != 0; }

// Adds the nodes of `more` that `front` lacks.
void Join(CaptureFront& front, const CaptureFront& more) {
  for (const GraphEdge& edge : more) {
    const bool known = std::any_of(front.begin(), front.end(),
                                   [&](const GraphEdge& own) { return own.node == edge.node; });
    if (!known) front.push_back(edge);
  }
}

// Makes the stream a participant, behind `front`.
void Enter(const ClientStreamPtr& stream, const CapturePtr& sequence, CaptureFront front) {
  sequence->streams.push_back(stream);
  stream->capture = std::make_shared<StreamCapture>();
  stream->capture->sequence = sequence;
  stream->capture->front = std::move(front);
}

// Whether the fronts of all participants lie, directly or not, before the front of the first
// stream.
bool IsJoined(const CaptureSequence& sequence) {
  std::vector<const GraphNode*> open;
  for (const GraphEdge& edge : sequence.streams.front()->capture->front) open.push_back(edge.node);
  std::unordered_set<const GraphNode*> reached(open.begin(), open.end());
  while (!open.empty()) {
    const GraphNode* const node = open.back();
    open.pop_back();
    for (const GraphEdge& edge : node->dependencies)
      if (reached.insert(edge.node).second) open.push_back(edge.node);
  }
  const auto is_reached = [&](const CaptureFront& front) {
    return std::all_of(front.begin(), front.end(),
                       [&](const GraphEdge& edge) { return reached.contains(edge.node); });
  };
  return is_reached(sequence.left) && std::all_of(sequence.streams.begin(), sequence.streams.end(),
                                                  [&](const ClientStreamPtr& stream) {
                                                    return is_reached(stream->capture->front);
                                                  });
}

// Ends a capture: the streams take commands again.
void Finish(const CapturePtr& sequence) {
  for (const ClientStreamPtr& member : sequence->streams) member->capture.reset();
  std::erase(TheCaptures(), sequence);
  --captures_running;
}

// Finds a stream in a valid capture.
cudaError_t FindCapture(cudaStream_t handle, ClientStreamPtr& stream) {
  TORPOR_TRY(FindStream(handle, stream));
  if (!stream->capture) return cudaErrorIllegalState;
  return stream->capture->sequence->is_valid ? cudaSuccess : cudaErrorStreamCaptureInvalidated;
}

// Whether legacy-stream work of the device in use would have to wait for captured, unsent work of a
// blocking stream.
bool IsDisturbedByLegacy(const CaptureSequence& sequence) {
  return std::any_of(
      sequence.streams.begin(), sequence.streams.end(),
      [](const ClientStreamPtr& one) { return one->core == &Core() && IsBlocking(*one); });
}

}  // namespace

bool IsCapturing(cudaStream_t handle) {
  if (!AnyCapture()) return false;
  ClientStreamPtr stream;
  const GraphLock lock;
  return FindStream(handle, stream) == cudaSuccess && stream->capture != nullptr;
}

cudaError_t Capture(cudaStream_t handle, NodeWork work) {
  const GraphLock lock;
  ClientStreamPtr stream;
  TORPOR_TRY(FindCapture(handle, stream));
  StreamCapture& capture = *stream->capture;
  Graph& graph = *capture.sequence->graph;
  GraphNode& node = graph.Add(std::move(work));
  for (const GraphEdge& edge : capture.front) graph.Connect(*edge.node, node, edge.data);
  capture.front = {{&node, {}}};
  return cudaSuccess;
}

cudaError_t CaptureRecord(cudaStream_t handle, CapturedRecord& record) {
  const GraphLock lock;
  ClientStreamPtr stream;
  TORPOR_TRY(FindCapture(handle, stream));
  record = {stream->capture->sequence, stream->capture->front};
  return cudaSuccess;
}

cudaError_t CaptureWait(cudaStream_t handle, const CapturedRecord& record) {
  const GraphLock lock;
  const CapturePtr sequence = record.capture.lock();
  if (!sequence) return cudaErrorCapturedEvent;
  if (!sequence->is_valid) return cudaErrorStreamCaptureInvalidated;
  ClientStreamPtr stream;
  TORPOR_TRY(FindStream(handle, stream));
  if (!stream->capture) {
    if (IsLegacy(*stream)) return cudaErrorStreamCaptureImplicit;
    if (stream->core != sequence->streams.front()->core) {
      Core().WarnOnce("capture device", "a graph of several devices is not supported");
      sequence->is_valid = false;
      return cudaErrorNotSupported;
    }
    Enter(stream, sequence, record.front);
    return cudaSuccess;
  }
  if (stream->capture->sequence != sequence) {
    sequence->is_valid = false;
    return InvalidateCapture(handle, cudaErrorStreamCaptureMerge);
  }
  Join(stream->capture->front, record.front);
  return cudaSuccess;
}

cudaError_t InvalidateCapture(cudaStream_t handle, cudaError_t error) {
  const GraphLock lock;
  ClientStreamPtr stream;
  TORPOR_TRY(FindCapture(handle, stream));
  stream->capture->sequence->is_valid = false;
  return error;
}

void InvalidateCaptureOf(const CapturedRecord& record) {
  const GraphLock lock;
  if (const CapturePtr sequence = record.capture.lock()) sequence->is_valid = false;
}

cudaError_t RefuseCaptured(const ClientStreamPtr& stream) {
  if (!AnyCapture()) return cudaSuccess;
  const GraphLock lock;
  if (stream->capture) {
    const bool was_valid = std::exchange(stream->capture->sequence->is_valid, false);
    return was_valid ? cudaErrorStreamCaptureUnsupported : cudaErrorStreamCaptureInvalidated;
  }
  if (!IsLegacy(*stream)) return cudaSuccess;
  cudaError_t result = cudaSuccess;
  for (const CapturePtr& sequence : TheCaptures()) {
    if (!IsDisturbedByLegacy(*sequence)) continue;
    sequence->is_valid = false;
    result = cudaErrorStreamCaptureImplicit;
  }
  return result;
}

cudaError_t LeaveCapture(const ClientStreamPtr& stream) {
  if (!AnyCapture()) return cudaSuccess;
  const GraphLock lock;
  if (!stream->capture) return cudaSuccess;
  CaptureSequence& sequence = *stream->capture->sequence;
  if (sequence.streams.front() == stream) return RefuseCaptured(stream);
  Join(sequence.left, stream->capture->front);
  std::erase(sequence.streams, stream);
  stream->capture.reset();
  return cudaSuccess;
}

void AbandonCapture(const ClientStreamPtr& stream) {
  if (!AnyCapture()) return;
  const GraphLock lock;
  if (!stream->capture) return;
  const CapturePtr sequence = stream->capture->sequence;
  if (sequence->streams.front() == stream)
    Finish(sequence);
  else
    (void)LeaveCapture(stream);
}

void AbandonCaptures() {
  const GraphLock lock;
  const std::vector<CapturePtr> captures = TheCaptures();
  for (const CapturePtr& sequence : captures)
    if (sequence->streams.front()->core == &Core()) Finish(sequence);
}

cudaError_t RefuseUnsafe() {
  if (!AnyCapture() || thread_mode == cudaStreamCaptureModeRelaxed) return cudaSuccess;
  const GraphLock lock;
  cudaError_t result = cudaSuccess;
  for (const CapturePtr& sequence : TheCaptures()) {
    const bool is_own = sequence->thread == std::this_thread::get_id() &&
                        sequence->mode != cudaStreamCaptureModeRelaxed;
    const bool is_global =
        sequence->mode == cudaStreamCaptureModeGlobal && thread_mode == cudaStreamCaptureModeGlobal;
    if (!is_own && !is_global) continue;
    sequence->is_valid = false;
    result = cudaErrorStreamCaptureUnsupported;
  }
  return result;
}

cudaError_t BeginCapture(const ClientStreamPtr& stream, cudaStreamCaptureMode mode, Graph* graph,
                         CaptureFront front) {
  static unsigned long long last_id = 0;
  if (IsLegacy(*stream)) return cudaErrorStreamCaptureUnsupported;
  if (stream->capture) return cudaErrorIllegalState;
  auto sequence = std::make_shared<CaptureSequence>();
  sequence->id = ++last_id;
  sequence->mode = mode;
  sequence->thread = std::this_thread::get_id();
  if (!graph) sequence->owned = std::make_unique<Graph>();
  sequence->graph = graph ? graph : sequence->owned.get();
  Enter(stream, sequence, std::move(front));
  TheCaptures().push_back(std::move(sequence));
  OpenStreamGate();
  ++captures_running;
  return cudaSuccess;
}

cudaError_t EndCapture(const ClientStreamPtr& stream, cudaGraph_t& graph) {
  graph = nullptr;
  if (!stream->capture) return cudaErrorIllegalState;
  const CapturePtr sequence = stream->capture->sequence;
  if (sequence->streams.front() != stream) {
    sequence->is_valid = false;
    return cudaErrorStreamCaptureUnmatched;
  }
  const bool is_own_thread = sequence->thread == std::this_thread::get_id();
  if (sequence->mode != cudaStreamCaptureModeRelaxed && !is_own_thread)
    return cudaErrorStreamCaptureWrongThread;
  cudaError_t result = cudaSuccess;
  if (!sequence->is_valid)
    result = cudaErrorStreamCaptureInvalidated;
  else if (!IsJoined(*sequence))
    result = cudaErrorStreamCaptureUnjoined;
  Finish(sequence);
  if (result != cudaSuccess) return result;
  graph = sequence->graph->handle();
  (void)sequence->owned.release();  // the program owns the graph from now on
  return cudaSuccess;
}

bool LegacyDisturbsCapture() {
  const std::vector<CapturePtr>& captures = TheCaptures();
  return std::any_of(captures.begin(), captures.end(),
                     [](const CapturePtr& sequence) { return IsDisturbedByLegacy(*sequence); });
}

cudaStreamCaptureMode ExchangeThreadMode(cudaStreamCaptureMode mode) {
  return std::exchange(thread_mode, mode);
}

}  // namespace torpor::shim
