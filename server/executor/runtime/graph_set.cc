#include "server/executor/runtime/graph_set.h"

#include <driver_types.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/executor/gpu/call_status.h"

namespace torpor::executor {
namespace {

// Upper bounds of a session's graphs.
constexpr std::size_t kMaxGraphs = 1u << 16;
constexpr Bytes kMaxBytes = 256 * kMiB;
constexpr std::size_t kMaxNodes = 1u << 20;

// What a command of a node puts into the driver's queues, with waits for other lanes.
constexpr std::size_t kPiecesOfNode = 2;

}  // namespace

GraphSet::~GraphSet() {
  for (const CUstream lane : side_lanes_) device_.discarded().Add(lane);
  device_.discarded().Add(capture_lane_);
}

absl::StatusOr<GraphSet::Graph*> GraphSet::Find(std::uint64_t id) const {
  const auto found = graphs_.find(id);
  if (found == graphs_.end()) {
    return absl::NotFoundError(absl::StrCat("the session has no graph ", id));
  }
  return found->second.get();
}

absl::Status GraphSet::Create(std::uint64_t id) {
  if (graphs_.size() >= kMaxGraphs) {
    return absl::ResourceExhaustedError("the session has too many graphs");
  }
  if (!graphs_.try_emplace(id, std::make_unique<Graph>(device_)).second) {
    return absl::InvalidArgumentError(absl::StrCat("the session has graph ", id, " already"));
  }
  return absl::OkStatus();
}

absl::Status GraphSet::CheckRoom(std::size_t nodes, Bytes bytes) const {
  if (nodes <= kMaxNodes - nodes_ && bytes <= kMaxBytes - bytes_) return absl::OkStatus();
  return absl::ResourceExhaustedError("the session's graphs are too large");
}

template <typename Work>
absl::Status GraphSet::Change(SessionGraph& graph, const Work& work) {
  nodes_ -= graph.size();
  bytes_ -= graph.bytes();
  absl::Status status = work();
  nodes_ += graph.size();
  bytes_ += graph.bytes();
  return status;
}

absl::Status GraphSet::AddNodes(const wire::GraphAddNodes& command) {
  TORPOR_ASSIGN_OR_RETURN(Graph * found, Find(command.graph));
  SessionGraph* const graph = &found->commands;
  if (command.first != graph->size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("nodes for place ", command.first, " of a graph that has ", graph->size()));
  }
  Bytes bytes = 0;
  for (const wire::GraphNode& node : command.nodes) bytes += SessionGraph::BytesOf(node);
  TORPOR_RETURN_IF_ERROR(CheckRoom(command.nodes.size(), bytes));
  return Change(*graph, [&] { return graph->Add(command.nodes); });
}

absl::Status GraphSet::SetNode(const wire::GraphSetNode& command) {
  TORPOR_ASSIGN_OR_RETURN(Graph * found, Find(command.graph));
  SessionGraph* const graph = &found->commands;
  TORPOR_RETURN_IF_ERROR(CheckRoom(0, SessionGraph::BytesOf(command.commands)));
  return Change(*graph, [&] { return graph->Set(command.node, command.commands); });
}

absl::Status GraphSet::Destroy(std::uint64_t id) {
  TORPOR_ASSIGN_OR_RETURN(const Graph* const found, Find(id));
  const SessionGraph* const graph = &found->commands;
  nodes_ -= graph->size();
  bytes_ -= graph->bytes();
  graphs_.erase(id);
  return absl::OkStatus();
}

CUresult GraphSet::MakeSideLanes(std::size_t count) {
  while (side_lanes_.size() < count) {
    CUstream lane = nullptr;
    const CUresult made =
        device_.driver().StreamCreateWithPriority(&lane, CU_STREAM_NON_BLOCKING, 0);
    if (made != CUDA_SUCCESS) return made;
    side_lanes_.push_back(lane);
  }
  return CUDA_SUCCESS;
}

cuda_api::CallStatus GraphSet::Launch(std::uint64_t id, std::uint64_t stream) {
  const absl::StatusOr<Graph*> graph = Find(id);
  if (!graph.ok()) return ToCallStatus(graph.status(), "cudaGraphLaunch");
  CUstream origin = nullptr;
  CUresult result = streams_.Use(stream, origin);
  if (result == CUDA_SUCCESS && (*graph)->commands.lanes() > 1) {
    result = MakeSideLanes((*graph)->commands.lanes() - 1);
  }
  if (result != CUDA_SUCCESS) return ToCallStatus(device_.driver(), result, "cudaGraphLaunch");
  return LaunchOn(**graph, origin);
}

cuda_api::CallStatus GraphSet::LaunchOn(Graph& graph, CUstream origin) {
  if (!Prepare(graph)) {
    return graph.commands.Launch(origin, [&] { return IssueInTurn(graph, origin); });
  }
  image_.MarkDirty();
  ++counts_.launched;
  return graph.commands.Launch(origin, [&] {
    return ToCallStatus(device_.driver(), graph.driver.Launch(origin), "launching a graph");
  });
}

// A graph may have more nodes than there is room for.
cuda_api::CallStatus GraphSet::IssueInTurn(Graph& graph, CUstream origin) {
  return IssueNodes(graph, origin, [this](CUstream lane) {
    PendingWork& pending = streams_.pending();
    if (!pending.AwaitRoom()) return false;
    pending.Note(lane, kPiecesOfNode);
    return true;
  });
}

template <typename Begin>
cuda_api::CallStatus GraphSet::IssueNodes(Graph& graph, CUstream origin, const Begin& begin) {
  const auto run = [&](const wire::GraphCommand& command, CUstream lane) {
    if (!begin(lane)) {
      return cuda_api::CallFailed(cudaErrorDevicesUnavailable,
                                  "the lease ended in the middle of a graph");
    }
    streams_.Redirect(lane);
    return run_(command);
  };
  cuda_api::CallStatus status = graph.commands.IssueNodes(origin, side_lanes_, run);
  streams_.Redirect(nullptr);
  return status;
}

// Making a graph of the driver costs several launches node by node, so only a graph that comes
// again unchanged gets one. While memory still arrives, each command waits for its own part; a
// recording of the memory in use needs one launch node by node.
bool GraphSet::Prepare(Graph& graph) {
  if (image_.addresses().is_translating() || image_.arrival().is_pending()) return false;
  const SessionGraph::Fitness fitness = graph.commands.fitness();
  const Stamp now{graph.commands.version(), changes_,
                  fitness.has_library_work ? library_changes_ : 0,
                  fitness.names_ranges ? image_.removals() : 0};
  const std::uint64_t recording = image_.touches().recording();
  const bool is_noted = recording == 0 || std::exchange(graph.noted_in, recording) == recording;
  const bool comes_again = is_noted && graph.latest == now;
  graph.latest = now;
  if (is_noted && graph.driver.is_ready() && graph.made == now) return true;
  if (!comes_again || graph.refused == now) return false;
  if (!fitness.fits_driver || !Capture(graph)) {
    graph.refused = now;
    return false;
  }
  graph.made = now;
  return true;
}

bool GraphSet::Capture(Graph& graph) {
  if (capture_lane_ == nullptr && device_.driver().StreamCreateWithPriority(
                                      &capture_lane_, CU_STREAM_NON_BLOCKING, 0) != CUDA_SUCCESS) {
    return false;
  }
  const bool captured = graph.driver.Capture(capture_lane_, [&] {
    return IssueNodes(graph, capture_lane_, [](CUstream) { return true; }).ok();
  });
  if (captured) ++counts_.captured;
  return captured;
}

void GraphSet::EndResidency() {
  for (const auto& [id, graph] : graphs_) {
    graph->driver.Drop();
    graph->latest.reset();
    graph->refused.reset();
  }
}

}  // namespace torpor::executor
