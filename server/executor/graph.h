#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "base/units.h"
#include "proto/cuda_api/call_outcome.h"
#include "proto/cuda_api/cudart_commands.h"
#include "server/executor/device.h"

namespace torpor::executor {

// Most branches of a graph that run side by side; more share these.
inline constexpr std::size_t kMostGraphLanes = 16;

// Commands that run again with every launch, each as soon as those that it depends on are done.
// A node is put on a lane, a stream of the driver: behind one of the nodes that it waits for where
// that is the last of its lane, else on a lane of its own. Lane 0 is the stream of the launch. Of
// one thread at a time, on which the device is current.
class Graph {
 public:
  explicit Graph(const Device& device) : device_(device) {}
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  // InvalidArgument, and nothing is added, if a node depends on itself or on a later one, or if
  // one of its commands cannot be in a graph.
  absl::Status Add(std::vector<wire::GraphNode> nodes);
  absl::Status Set(std::uint32_t node, std::vector<wire::GraphCommand> commands);

  std::size_t size() const { return nodes_.size(); }
  std::size_t lanes() const { return last_of_lane_.size(); }
  // Of all commands.
  Bytes bytes() const { return bytes_; }

  // Carries out one command on `stream`.
  using Run = std::function<cuda_api::CallStatus(const wire::GraphCommand&, CUstream stream)>;
  // Issues all commands: after what `lanes[0]` has to do and after the graph's earlier launches;
  // what comes on lanes[0] later comes after all of them. Stops at the first that fails.
  // `lanes`: as many as lanes(), and one at least.
  cuda_api::CallStatus Launch(std::span<const CUstream> lanes, const Run& run);

 private:
  struct Node {
    std::vector<wire::GraphCommand> commands;
    std::vector<std::uint32_t> waits;  // nodes of other lanes
    std::uint32_t lane = 0;
    CUevent done = nullptr;  // where a node of another lane waits for this one
  };
  struct Lane {
    std::uint32_t last = 0;    // node
    bool is_awaited = false;   // some node depends on `last`: the lane is likely idle by then
    CUevent joined = nullptr;  // lane 0: the launch's begin; others: their part's end
  };

  std::uint32_t ChooseLane(const std::vector<std::uint32_t>& dependencies);
  absl::Status MakeEvent(CUevent& event) const;
  CUresult Begin(CUstream origin) const;
  CUresult Enter(const Node& node, std::span<const CUstream> lanes, std::vector<bool>& entered);
  CUresult End(std::span<const CUstream> lanes, const std::vector<bool>& entered);

  const Device& device_;
  std::vector<Node> nodes_;
  std::vector<Lane> last_of_lane_;
  Bytes bytes_ = 0;
  CUevent launched_ = nullptr;  // the end of the latest launch
};

}  // namespace torpor::executor
