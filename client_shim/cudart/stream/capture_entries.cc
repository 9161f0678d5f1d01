// The entries that begin, end and describe captures.
#include "client_shim/cudart/call/entry.h"
#include "client_shim/cudart/graph/graph_lock.h"
#include "client_shim/cudart/stream/capture_sequence.h"
#include "client_shim/cudart/stream/streams.h"

namespace torpor::shim {
namespace {

bool IsMode(cudaStreamCaptureMode mode) {
  return mode >= cudaStreamCaptureModeGlobal && mode <= cudaStreamCaptureModeRelaxed;
}

// Reads a program's list of nodes of `graph` as dependencies of the next node.
cudaError_t ReadFront(const Graph& graph, const cudaGraphNode_t* nodes,
                      const cudaGraphEdgeData* edges, std::size_t count, CaptureFront& front) {
  if (count > 0 && !nodes) return cudaErrorInvalidValue;
  for (std::size_t i = 0; i < count; ++i) {
    GraphNode* const node = Graph::FindNode(nodes[i]);
    if (!node || node->graph != &graph) return cudaErrorInvalidValue;
    front.push_back({node, edges ? edges[i] : cudaGraphEdgeData{}});
  }
  return cudaSuccess;
}

cudaError_t BeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  if (!IsMode(mode)) return cudaErrorInvalidValue;
  ClientStreamPtr stream;
  TORPOR_TRY(FindStream(handle, stream));
  const GraphLock lock;
  return BeginCapture(stream, mode, nullptr, {});
}

cudaError_t BeginInto(cudaStream_t handle, cudaGraph_t graph_handle, const cudaGraphNode_t* nodes,
                      const cudaGraphEdgeData* edges, std::size_t count,
                      cudaStreamCaptureMode mode) {
  if (!IsMode(mode)) return cudaErrorInvalidValue;
  ClientStreamPtr stream;
  TORPOR_TRY(FindStream(handle, stream));
  const GraphLock lock;
  Graph* const graph = Graph::Find(graph_handle);
  if (!graph) return cudaErrorInvalidValue;
  CaptureFront front;
  TORPOR_TRY(ReadFront(*graph, nodes, edges, count, front));
  return BeginCapture(stream, mode, graph, std::move(front));
}

cudaError_t End(cudaStream_t handle, cudaGraph_t* graph) {
  if (!graph) return cudaErrorInvalidValue;
  ClientStreamPtr stream;
  TORPOR_TRY(FindStream(handle, stream));
  const GraphLock lock;
  return EndCapture(stream, *graph);
}

cudaStreamCaptureStatus StatusOf(const ClientStream& stream) {
  if (!stream.capture) return cudaStreamCaptureStatusNone;
  return stream.capture->sequence->is_valid ? cudaStreamCaptureStatusActive
                                            : cudaStreamCaptureStatusInvalidated;
}

cudaError_t TellStatus(cudaStream_t handle, cudaStreamCaptureStatus* status) {
  if (!status) return cudaErrorInvalidValue;
  ClientStreamPtr stream;
  TORPOR_TRY(FindStream(handle, stream));
  const GraphLock lock;
  if (IsLegacy(*stream) && LegacyDisturbsCapture()) return cudaErrorStreamCaptureImplicit;
  *status = StatusOf(*stream);
  return cudaSuccess;
}

// The program's places for facts about a capture; all but `status` may be null.
struct CaptureInfo {
  cudaStreamCaptureStatus* status;
  unsigned long long* id;
  cudaGraph_t* graph;
  const cudaGraphNode_t** nodes;
  const cudaGraphEdgeData** edges;
  std::size_t* count;
};

cudaError_t TellInfo(cudaStream_t handle, const CaptureInfo& info) {
  const GraphLock lock;  // keeps the capture from ending meanwhile
  TORPOR_TRY(TellStatus(handle, info.status));
  if (*info.status != cudaStreamCaptureStatusActive) return cudaSuccess;
  ClientStreamPtr stream;
  TORPOR_TRY(FindStream(handle, stream));
  StreamCapture& capture = *stream->capture;
  capture.told_nodes.clear();
  capture.told_edges.clear();
  for (const GraphEdge& edge : capture.front) {
    capture.told_nodes.push_back(edge.node->handle());
    capture.told_edges.push_back(edge.data);
  }
  if (info.id) *info.id = capture.sequence->id;
  if (info.graph) *info.graph = capture.sequence->graph->handle();
  if (info.nodes) *info.nodes = capture.told_nodes.data();
  if (info.edges) *info.edges = capture.told_edges.data();
  if (info.count) *info.count = capture.front.size();
  return cudaSuccess;
}

cudaError_t UpdateDependencies(cudaStream_t handle, const cudaGraphNode_t* nodes,
                               const cudaGraphEdgeData* edges, std::size_t count, unsigned flags) {
  if (flags != cudaStreamAddCaptureDependencies && flags != cudaStreamSetCaptureDependencies)
    return cudaErrorInvalidValue;
  ClientStreamPtr stream;
  TORPOR_TRY(FindStream(handle, stream));
  const GraphLock lock;
  if (StatusOf(*stream) == cudaStreamCaptureStatusNone) return cudaErrorIllegalState;
  if (StatusOf(*stream) == cudaStreamCaptureStatusInvalidated)
    return cudaErrorStreamCaptureInvalidated;
  StreamCapture& capture = *stream->capture;
  CaptureFront front;
  if (flags == cudaStreamAddCaptureDependencies) front = capture.front;
  TORPOR_TRY(ReadFront(*capture.sequence->graph, nodes, edges, count, front));
  capture.front = std::move(front);
  return cudaSuccess;
}

}  // namespace
}  // namespace torpor::shim

using namespace torpor::shim;  // NOLINT(google-build-using-namespace): the entries' own library

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode) {
  return Entry([&] { return BeginCapture(stream, mode); });
}

cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph,
                                          const cudaGraphNode_t* dependencies,
                                          const cudaGraphEdgeData* edges, size_t count,
                                          enum cudaStreamCaptureMode mode) {
  return Entry([&] { return BeginInto(stream, graph, dependencies, edges, count, mode); });
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return Entry([&] { return End(stream, graph); });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus* status) {
  return Entry([&] { return TellStatus(stream, status); });
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t* graph,
                                     const cudaGraphNode_t** dependencies,
                                     const cudaGraphEdgeData** edges, size_t* count) {
  return Entry([&] { return TellInfo(stream, {status, id, graph, dependencies, edges, count}); });
}

cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* dependencies,
                                                const cudaGraphEdgeData* edges, size_t count,
                                                unsigned int flags) {
  return Entry([&] { return UpdateDependencies(stream, dependencies, edges, count, flags); });
}

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode* mode) {
  return Entry([&] {
    if (!mode || !IsMode(*mode)) return cudaErrorInvalidValue;
    *mode = ExchangeThreadMode(*mode);
    return cudaSuccess;
  });
}
