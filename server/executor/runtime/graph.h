#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "base/units.h"
#include "proto/cuda_api/call_outcome.h"
#include "proto/cuda_api/cudart_commands.h"
#include "server/executor/gpu/device.h"

namespace torpor::executor {

// Most branches of a graph that run side by side; more share these.
inline constexpr std::size_t kMaxGraphLanes = 16;

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

  // Memory that a node takes, of the host and (some way) of the driver.
  static Bytes BytesOf(const wire::GraphNode& node);
  static Bytes BytesOf(const std::vector<wire::GraphCommand>& commands);

  // InvalidArgument, and nothing is added, if a node depends on itself or on a later one, or if
  // one of its commands cannot be in a graph.
  absl::Status Add(std::vector<wire::GraphNode> nodes);
  absl::Status Set(std::uint32_t node, std::vector<wire::GraphCommand> commands);

  std::size_t size() const { return nodes_.size(); }
  std::size_t lanes() const { return lanes_.size(); }
  // Of all nodes.
  Bytes bytes() const { return bytes_; }

  // Carries out one command on `stream`.
  using Run = std::function<cuda_api::CallStatus(const wire::GraphCommand&, CUstream stream)>;
  // Issues all commands: after what `origin`, lane 0, has to do and after the graph's earlier
  // launches; what comes on `origin` later comes after all of them. Stops at the first that fails.
  // `side_lanes`: lane 1 and on, at least as many as lanes() tells.
  cuda_api::CallStatus Launch(CUstream origin, std::span<const CUstream> side_lanes,
                              const Run& run);

 private:
  struct Node {
    std::vector<wire::GraphCommand> commands;
    std::vector<std::uint32_t> waits;  // nodes of other lanes
    std::uint32_t lane = 0;
    CUevent done = nullptr;  // where a node of another lane waits for this one
  };
  struct Lane {
    std::uint32_t last = 0;   // node
    bool is_awaited = false;  // some node depends on `last`: the lane is likely idle by then
    CUevent ended = nullptr;  // of a side lane: its part of a launch
  };
  // The streams of one launch.
  struct Streams {
    CUstream origin;
    std::span<const CUstream> side_lanes;
    CUstream operator[](std::size_t lane) const {
      return lane == 0 ? origin : side_lanes[lane - 1];
    }
  };

  std::uint32_t ChooseLane(const std::vector<std::uint32_t>& dependencies);
  absl::Status MakeEvent(CUevent& event) const;
  CUresult Begin(CUstream origin) const;
  CUresult Enter(const Node& node, const Streams& streams, std::vector<bool>& entered);
  CUresult End(const Streams& streams, const std::vector<bool>& entered);

  const Device& device_;
  std::vector<Node> nodes_;
  std::vector<Lane> lanes_;
  Bytes bytes_ = 0;
  CUevent begun_ = nullptr;     // the begin of the latest launch, for side lanes
  CUevent launched_ = nullptr;  // its end
};

}  // namespace torpor::executor
