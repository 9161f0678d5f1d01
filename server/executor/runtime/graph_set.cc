#include "server/executor/runtime/graph_set.h"

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

}  // namespace

GraphSet::~GraphSet() {
  for (const CUstream lane : side_lanes_) device_.driver().StreamDestroy(lane);
}

absl::StatusOr<SessionGraph*> GraphSet::Find(std::uint64_t id) const {
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
  if (!graphs_.try_emplace(id, std::make_unique<SessionGraph>(device_)).second) {
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
  TORPOR_ASSIGN_OR_RETURN(SessionGraph * graph, Find(command.graph));
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
  TORPOR_ASSIGN_OR_RETURN(SessionGraph * graph, Find(command.graph));
  TORPOR_RETURN_IF_ERROR(CheckRoom(0, SessionGraph::BytesOf(command.commands)));
  return Change(*graph, [&] { return graph->Set(command.node, command.commands); });
}

absl::Status GraphSet::Destroy(std::uint64_t id) {
  TORPOR_ASSIGN_OR_RETURN(const SessionGraph* const graph, Find(id));
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
  const absl::StatusOr<SessionGraph*> graph = Find(id);
  if (!graph.ok()) return ToCallStatus(graph.status(), "cudaGraphLaunch");
  CUstream origin = nullptr;
  CUresult result = streams_.Use(stream, origin);
  if (result == CUDA_SUCCESS && (*graph)->lanes() > 1) {
    result = MakeSideLanes((*graph)->lanes() - 1);
  }
  if (result != CUDA_SUCCESS) return ToCallStatus(device_.driver(), result, "cudaGraphLaunch");
  cuda_api::CallStatus status =
      (*graph)->Launch(origin, side_lanes_, [&](const wire::GraphCommand& command, CUstream lane) {
        streams_.Redirect(lane);
        return run_(command);
      });
  streams_.Redirect(nullptr);
  return status;
}

}  // namespace torpor::executor
