#include "server/executor/graph_set.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/executor/call_status.h"

namespace torpor::executor {
namespace {

// What one session may keep here.
constexpr std::size_t kMostGraphs = 1u << 16;
constexpr Bytes kMostBytes = 256 * kMiB;
constexpr std::size_t kMostNodes = 1u << 20;  // of one graph

}  // namespace

GraphSet::~GraphSet() {
  for (const CUstream lane : lanes_) {
    if (lane != nullptr) device_.driver().StreamDestroy(lane);
  }
}

absl::StatusOr<Graph*> GraphSet::Find(std::uint64_t id) const {
  const auto found = graphs_.find(id);
  if (found == graphs_.end()) {
    return absl::NotFoundError(absl::StrCat("the session has no graph ", id));
  }
  return found->second.get();
}

absl::Status GraphSet::Create(std::uint64_t id) {
  if (graphs_.size() >= kMostGraphs) {
    return absl::ResourceExhaustedError("the session has too many graphs");
  }
  if (!graphs_.try_emplace(id, std::make_unique<Graph>(device_)).second) {
    return absl::InvalidArgumentError(absl::StrCat("the session has graph ", id, " already"));
  }
  return absl::OkStatus();
}

Bytes GraphSet::TotalBytes() const {
  Bytes bytes = 0;
  for (const auto& [id, graph] : graphs_) bytes += graph->bytes();
  return bytes;
}

absl::Status GraphSet::AddNodes(const wire::GraphAddNodes& command) {
  TORPOR_ASSIGN_OR_RETURN(Graph * graph, Find(command.graph));
  if (command.first != graph->size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("nodes for place ", command.first, " of a graph that has ", graph->size()));
  }
  if (command.nodes.size() > kMostNodes - graph->size() || TotalBytes() > kMostBytes) {
    return absl::ResourceExhaustedError("the session's graphs are too large");
  }
  return graph->Add(command.nodes);
}

absl::Status GraphSet::SetNode(const wire::GraphSetNode& command) {
  TORPOR_ASSIGN_OR_RETURN(Graph * graph, Find(command.graph));
  if (TotalBytes() > kMostBytes) {
    return absl::ResourceExhaustedError("the session's graphs are too large");
  }
  return graph->Set(command.node, command.commands);
}

absl::Status GraphSet::Destroy(std::uint64_t id) {
  TORPOR_RETURN_IF_ERROR(Find(id).status());
  graphs_.erase(id);
  return absl::OkStatus();
}

CUresult GraphSet::MakeLanes(std::size_t count) {
  if (lanes_.empty()) lanes_.push_back(nullptr);
  while (lanes_.size() < count) {
    CUstream lane = nullptr;
    const CUresult made =
        device_.driver().StreamCreateWithPriority(&lane, CU_STREAM_NON_BLOCKING, 0);
    if (made != CUDA_SUCCESS) return made;
    lanes_.push_back(lane);
  }
  return CUDA_SUCCESS;
}

cuda_api::CallStatus GraphSet::Launch(std::uint64_t id, std::uint64_t stream) {
  const absl::StatusOr<Graph*> graph = Find(id);
  if (!graph.ok()) return ToCallStatus(graph.status(), "cudaGraphLaunch");
  CUstream origin = nullptr;
  CUresult result = streams_.Use(stream, origin);
  if (result == CUDA_SUCCESS) result = MakeLanes((*graph)->lanes());
  if (result != CUDA_SUCCESS) return ToCallStatus(device_.driver(), result, "cudaGraphLaunch");
  std::vector<CUstream> lanes = lanes_;
  lanes[0] = origin;
  cuda_api::CallStatus status =
      (*graph)->Launch(lanes, [&](const wire::GraphCommand& command, CUstream lane) {
        streams_.Redirect(lane);
        return run_(command);
      });
  streams_.Redirect(nullptr);
  return status;
}

}  // namespace torpor::executor
