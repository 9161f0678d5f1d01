#include "server/executor/runtime/session_graph.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/executor/gpu/call_status.h"
#include "server/executor/runtime/graph_commands.h"

namespace torpor::executor {
namespace {

absl::Status CheckCommands(const std::vector<wire::GraphCommand>& commands) {
  for (const wire::GraphCommand& command : commands) {
    if (!CanBeInGraph(command.call_id)) {
      return absl::InvalidArgumentError(
          absl::StrCat("call ", command.call_id, " cannot be in a graph"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckDependencies(const wire::GraphNode& node, std::size_t place) {
  for (const std::uint32_t dependency : node.dependencies) {
    if (dependency >= place) {
      return absl::InvalidArgumentError(
          absl::StrCat("node ", place, " of a graph depends on node ", dependency));
    }
  }
  return absl::OkStatus();
}

}  // namespace

SessionGraph::~SessionGraph() {
  DiscardedObjects& discarded = device_.discarded();
  for (const Node& node : nodes_) discarded.Add(node.done);
  for (const Lane& lane : lanes_) discarded.Add(lane.ended);
  discarded.Add(begun_);
  discarded.Add(launched_);
}

Bytes SessionGraph::BytesOf(const std::vector<wire::GraphCommand>& commands) {
  Bytes bytes = commands.size() * sizeof(wire::GraphCommand);
  for (const wire::GraphCommand& command : commands) bytes += command.fields.size();
  return bytes;
}

Bytes SessionGraph::BytesOf(const wire::GraphNode& node) {
  return sizeof(Node) + node.dependencies.size() * sizeof(node.dependencies[0]) +
         BytesOf(node.commands);
}

absl::Status SessionGraph::MakeEvent(CUevent& event) const {
  if (event != nullptr) return absl::OkStatus();
  return device_.Status(device_.driver().EventCreate(&event, CU_EVENT_DISABLE_TIMING),
                        "an event of a graph");
}

absl::Status SessionGraph::Add(std::vector<wire::GraphNode> nodes) {
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    TORPOR_RETURN_IF_ERROR(CheckDependencies(nodes[i], nodes_.size() + i));
    TORPOR_RETURN_IF_ERROR(CheckCommands(nodes[i].commands));
  }
  TORPOR_RETURN_IF_ERROR(MakeEvent(launched_));
  ++version_;
  fitness_.reset();
  for (wire::GraphNode& added : nodes) {
    bytes_ += BytesOf(added);
    Node node;
    node.lane = ChooseLane(added.dependencies);
    TORPOR_RETURN_IF_ERROR(MakeEvent(node.lane == 0 ? begun_ : lanes_[node.lane].ended));
    for (const std::uint32_t dependency : added.dependencies) {
      if (nodes_[dependency].lane == node.lane) continue;
      TORPOR_RETURN_IF_ERROR(MakeEvent(nodes_[dependency].done));
      node.waits.push_back(dependency);
    }
    node.commands = std::move(added.commands);
    nodes_.push_back(std::move(node));
  }
  return absl::OkStatus();
}

std::uint32_t SessionGraph::ChooseLane(const std::vector<std::uint32_t>& dependencies) {
  const auto place = static_cast<std::uint32_t>(nodes_.size());
  const auto take = [&](std::size_t lane) {
    lanes_[lane].last = place;
    lanes_[lane].is_awaited = false;
    return static_cast<std::uint32_t>(lane);
  };
  bool continues = false;
  std::uint32_t own = 0;
  for (const std::uint32_t dependency : dependencies) {
    Lane& lane = lanes_[nodes_[dependency].lane];
    if (lane.last != dependency) continue;
    if (!continues) own = nodes_[dependency].lane;
    continues = true;
    lane.is_awaited = true;
  }
  if (continues) return take(own);
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
    if (lanes_[lane].is_awaited) return take(lane);
  }
  if (lanes_.size() == kMaxGraphLanes) return take(place % kMaxGraphLanes);
  lanes_.emplace_back();
  return take(lanes_.size() - 1);
}

absl::Status SessionGraph::Set(std::uint32_t node, std::vector<wire::GraphCommand> commands) {
  if (node >= nodes_.size()) {
    return absl::InvalidArgumentError(absl::StrCat("a graph has no node ", node));
  }
  TORPOR_RETURN_IF_ERROR(CheckCommands(commands));
  bytes_ += BytesOf(commands) - BytesOf(nodes_[node].commands);
  nodes_[node].commands = std::move(commands);
  ++version_;
  fitness_.reset();
  return absl::OkStatus();
}

cuda_api::CallStatus SessionGraph::Launch(CUstream origin, const Issue& issue) {
  const CudaDriver& driver = device_.driver();
  const auto outcome = [&](CUresult result) {
    return ToCallStatus(driver, result, "launching a graph");
  };
  if (nodes_.empty()) return {};
  // A wait for an event without a record ends at once, as for a complete event.
  cuda_api::CallStatus status = outcome(driver.StreamWaitEvent(origin, launched_, 0));
  if (status.ok()) status = issue();
  // Also after a failure: what was issued goes on.
  const CUresult ended = driver.EventRecord(launched_, origin);
  return status.ok() ? outcome(ended) : status;
}

cuda_api::CallStatus SessionGraph::IssueNodes(CUstream origin, std::span<const CUstream> side_lanes,
                                              const Run& run) {
  const Streams streams{origin, side_lanes};
  const CudaDriver& driver = device_.driver();
  const auto outcome = [&](CUresult result) {
    return ToCallStatus(driver, result, "launching a graph");
  };
  cuda_api::CallStatus status;
  if (lanes_.size() > 1) status = outcome(driver.EventRecord(begun_, origin));
  std::vector<bool> entered(lanes_.size());
  entered[0] = true;
  for (std::size_t i = 0; status.ok() && i < nodes_.size(); ++i) {
    const Node& node = nodes_[i];
    status = outcome(Enter(node, streams, entered));
    for (const wire::GraphCommand& command : node.commands) {
      if (status.ok()) status = run(command, streams[node.lane]);
    }
    if (status.ok() && node.done != nullptr) {
      status = outcome(driver.EventRecord(node.done, streams[node.lane]));
    }
  }
  const CUresult ended = End(streams, entered);
  return status.ok() ? outcome(ended) : status;
}

SessionGraph::Fitness SessionGraph::fitness() {
  if (fitness_) return *fitness_;
  Fitness fitness;
  fitness.fits_driver = !nodes_.empty();
  for (const Node& node : nodes_) {
    for (const wire::GraphCommand& command : node.commands) {
      fitness.fits_driver = fitness.fits_driver && CanBeInDriverGraph(command.call_id);
      fitness.has_library_work = fitness.has_library_work || IsLibraryWork(command.call_id);
      fitness.names_ranges = fitness.names_ranges || command.call_id != wire::LaunchKernel::kCallId;
    }
  }
  fitness_ = fitness;
  return fitness;
}

CUresult SessionGraph::Enter(const Node& node, const Streams& streams, std::vector<bool>& entered) {
  const CudaDriver& driver = device_.driver();
  CUresult result = CUDA_SUCCESS;
  if (!entered[node.lane]) {
    entered[node.lane] = true;
    result = driver.StreamWaitEvent(streams[node.lane], begun_, 0);
  }
  for (const std::uint32_t earlier : node.waits) {
    if (result == CUDA_SUCCESS) {
      result = driver.StreamWaitEvent(streams[node.lane], nodes_[earlier].done, 0);
    }
  }
  return result;
}

CUresult SessionGraph::End(const Streams& streams, const std::vector<bool>& entered) {
  const CudaDriver& driver = device_.driver();
  CUresult result = CUDA_SUCCESS;
  for (std::size_t lane = 1; lane < entered.size(); ++lane) {
    if (!entered[lane]) continue;
    const CUevent ended = lanes_[lane].ended;
    if (result == CUDA_SUCCESS) result = driver.EventRecord(ended, streams[lane]);
    if (result == CUDA_SUCCESS) result = driver.StreamWaitEvent(streams.origin, ended, 0);
  }
  return result;
}

}  // namespace torpor::executor
