#include "server/executor/graph.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "proto/cuda_api/cublas_dispatch.h"
#include "server/executor/call_status.h"

namespace torpor::executor {
namespace {

// Work on a stream that leaves the session's objects as they are.
bool CanBeInGraph(std::uint32_t call_id) {
  switch (call_id) {
    case wire::LaunchKernel::kCallId:
    case wire::MemcpyHtoD::kCallId:
    case wire::MemcpyDtoHArena::kCallId:
    case wire::MemcpyDtoD::kCallId:
    case wire::Memcpy2D::kCallId:
    case wire::Memset::kCallId:
    case wire::Memset2D::kCallId:
      return true;
    default:
      return cuda_api::IsCublasCall(call_id);
  }
}

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

Bytes BytesOf(const std::vector<wire::GraphCommand>& commands) {
  Bytes bytes = 0;
  for (const wire::GraphCommand& command : commands) bytes += command.fields.size();
  return bytes;
}

}  // namespace

Graph::~Graph() {
  const auto destroy = [&](CUevent event) {
    if (event != nullptr) device_.driver().EventDestroy(event);
  };
  for (const Node& node : nodes_) destroy(node.done);
  for (const Lane& lane : last_of_lane_) destroy(lane.joined);
  destroy(launched_);
}

absl::Status Graph::MakeEvent(CUevent& event) const {
  if (event != nullptr) return absl::OkStatus();
  return device_.Status(device_.driver().EventCreate(&event, CU_EVENT_DISABLE_TIMING),
                        "an event of a graph");
}

absl::Status Graph::Add(std::vector<wire::GraphNode> nodes) {
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    TORPOR_RETURN_IF_ERROR(CheckDependencies(nodes[i], nodes_.size() + i));
    TORPOR_RETURN_IF_ERROR(CheckCommands(nodes[i].commands));
  }
  TORPOR_RETURN_IF_ERROR(MakeEvent(launched_));
  for (wire::GraphNode& added : nodes) {
    Node node;
    node.lane = ChooseLane(added.dependencies);
    TORPOR_RETURN_IF_ERROR(MakeEvent(last_of_lane_[node.lane].joined));
    for (const std::uint32_t dependency : added.dependencies) {
      if (nodes_[dependency].lane == node.lane) continue;
      TORPOR_RETURN_IF_ERROR(MakeEvent(nodes_[dependency].done));
      node.waits.push_back(dependency);
    }
    node.commands = std::move(added.commands);
    bytes_ += BytesOf(node.commands);
    nodes_.push_back(std::move(node));
  }
  return absl::OkStatus();
}

std::uint32_t Graph::ChooseLane(const std::vector<std::uint32_t>& dependencies) {
  const auto place = static_cast<std::uint32_t>(nodes_.size());
  const auto take = [&](std::size_t lane) {
    last_of_lane_[lane].last = place;
    last_of_lane_[lane].is_awaited = false;
    return static_cast<std::uint32_t>(lane);
  };
  bool continues = false;
  std::uint32_t own = 0;
  for (const std::uint32_t dependency : dependencies) {
    Lane& lane = last_of_lane_[nodes_[dependency].lane];
    if (lane.last != dependency) continue;
    if (!continues) own = nodes_[dependency].lane;
    continues = true;
    lane.is_awaited = true;
  }
  if (continues) return take(own);
  for (std::size_t lane = 0; lane < last_of_lane_.size(); ++lane) {
    if (last_of_lane_[lane].is_awaited) return take(lane);
  }
  if (last_of_lane_.size() == kMostGraphLanes) return take(place % kMostGraphLanes);
  last_of_lane_.emplace_back();
  return take(last_of_lane_.size() - 1);
}

absl::Status Graph::Set(std::uint32_t node, std::vector<wire::GraphCommand> commands) {
  if (node >= nodes_.size()) {
    return absl::InvalidArgumentError(absl::StrCat("a graph has no node ", node));
  }
  TORPOR_RETURN_IF_ERROR(CheckCommands(commands));
  bytes_ += BytesOf(commands) - BytesOf(nodes_[node].commands);
  nodes_[node].commands = std::move(commands);
  return absl::OkStatus();
}

cuda_api::CallStatus Graph::Launch(std::span<const CUstream> lanes, const Run& run) {
  if (nodes_.empty()) return {};
  const auto outcome = [&](CUresult result) {
    return ToCallStatus(device_.driver(), result, "launching a graph");
  };
  cuda_api::CallStatus status = outcome(Begin(lanes[0]));
  std::vector<bool> entered(last_of_lane_.size());
  entered[0] = true;
  for (std::size_t i = 0; status.ok() && i < nodes_.size(); ++i) {
    const Node& node = nodes_[i];
    status = outcome(Enter(node, lanes, entered));
    for (const wire::GraphCommand& command : node.commands) {
      if (status.ok()) status = run(command, lanes[node.lane]);
    }
    if (status.ok() && node.done != nullptr) {
      status = outcome(device_.driver().EventRecord(node.done, lanes[node.lane]));
    }
  }
  // Also after a failure: what was issued goes on.
  const CUresult ended = End(lanes, entered);
  return status.ok() ? outcome(ended) : status;
}

CUresult Graph::Begin(CUstream origin) const {
  const CudaDriver& driver = device_.driver();
  // One that was never recorded is waited for no longer than a complete one.
  const CUresult waited = driver.StreamWaitEvent(origin, launched_, 0);
  if (waited != CUDA_SUCCESS || last_of_lane_.size() == 1) return waited;
  return driver.EventRecord(last_of_lane_[0].joined, origin);
}

CUresult Graph::Enter(const Node& node, std::span<const CUstream> lanes,
                      std::vector<bool>& entered) {
  const CudaDriver& driver = device_.driver();
  CUresult result = CUDA_SUCCESS;
  if (!entered[node.lane]) {
    entered[node.lane] = true;
    result = driver.StreamWaitEvent(lanes[node.lane], last_of_lane_[0].joined, 0);
  }
  for (const std::uint32_t earlier : node.waits) {
    if (result == CUDA_SUCCESS) {
      result = driver.StreamWaitEvent(lanes[node.lane], nodes_[earlier].done, 0);
    }
  }
  return result;
}

CUresult Graph::End(std::span<const CUstream> lanes, const std::vector<bool>& entered) {
  const CudaDriver& driver = device_.driver();
  CUresult result = CUDA_SUCCESS;
  for (std::size_t lane = 1; lane < entered.size(); ++lane) {
    if (!entered[lane]) continue;
    const CUevent joined = last_of_lane_[lane].joined;
    if (result == CUDA_SUCCESS) result = driver.EventRecord(joined, lanes[lane]);
    if (result == CUDA_SUCCESS) result = driver.StreamWaitEvent(lanes[0], joined, 0);
  }
  return result == CUDA_SUCCESS ? driver.EventRecord(launched_, lanes[0]) : result;
}

}  // namespace torpor::executor
