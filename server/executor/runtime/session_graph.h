#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "base/units.h"
#include "proto/cuda_api/call_outcome.h"
#include "proto/cuda_api/cudart_commands.h"
#include "server/executor/gpu/device.h"

namespace torpor::executor {

// Upper bound of a graph's lanes, on which branches run side by side; more branches share lanes.
inline constexpr std::size_t kMaxGraphLanes = 16;

// Commands that run again with every launch, each as soon as its dependencies are done. A lane is
// a stream of the driver. A node goes on the lane of a dependency that is the last node there, else
// on a lane of its own. Lane 0 is the stream of the launch. Not thread-safe; call with the device
// current.
class SessionGraph {
 public:
  explicit SessionGraph(const Device& device) : device_(device) {}
  ~SessionGraph();
  SessionGraph(const SessionGraph&) = delete;
  SessionGraph& operator=(const SessionGraph&) = delete;

  // Returns the memory that a node takes of the host, and roughly of the driver.
  static Bytes BytesOf(const wire::GraphNode& node);
  static Bytes BytesOf(const std::vector<wire::GraphCommand>& commands);

  // Adds nodes behind the present ones. InvalidArgument, without any change, if a node depends on
  // itself or on a later node, or has a command that cannot be in a graph.
  absl::Status Add(std::vector<wire::GraphNode> nodes);
  // Replaces the commands of a node from the next launch on; dependencies stay.
  absl::Status Set(std::uint32_t node, std::vector<wire::GraphCommand> commands);

  std::size_t size() const { return nodes_.size(); }
  std::size_t lanes() const { return lanes_.size(); }
  // Of all nodes.
  Bytes bytes() const { return bytes_; }

  // Changes with every change of the graph.
  std::uint64_t version() const { return version_; }
  // Whether all work could be a graph of the driver, whether some is a library's, and whether some
  // names ranges of memory that are checked.
  struct Fitness {
    bool fits_driver = false;
    bool has_library_work = false;
    bool names_ranges = false;
  };
  Fitness fitness();

  // Has `issue` put the graph's work on `origin`: after the earlier work there, and after the
  // graph's earlier launches, wherever.
  using Issue = std::function<cuda_api::CallStatus()>;
  cuda_api::CallStatus Launch(CUstream origin, const Issue& issue);
  // Carries out one command on `stream`.
  using Run = std::function<cuda_api::CallStatus(const wire::GraphCommand&, CUstream stream)>;
  // Issues all commands after the earlier work of `origin`, lane 0; later work of `origin` follows
  // all commands. Stops at the first command that fails. `side_lanes` are lanes 1 to lanes() - 1 at
  // least.
  cuda_api::CallStatus IssueNodes(CUstream origin, std::span<const CUstream> side_lanes,
                                  const Run& run);

 private:
  struct Node {
    std::vector<wire::GraphCommand> commands;
    std::vector<std::uint32_t> waits;  // nodes of other lanes
    std::uint32_t lane = 0;
    CUevent done = nullptr;  // if a node of another lane waits for this node
  };
  struct Lane {
    std::uint32_t last = 0;   // node
    bool is_awaited = false;  // some node depends on `last`: the lane is likely idle by then
    CUevent ended = nullptr;  // of a side lane: the end of the launch there
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
  CUresult Enter(const Node& node, const Streams& streams, std::vector<bool>& entered);
  CUresult End(const Streams& streams, const std::vector<bool>& entered);

  const Device& device_;
  std::vector<Node> nodes_;
  std::vector<Lane> lanes_;
  Bytes bytes_ = 0;
  std::uint64_t version_ = 0;
  std::optional<Fitness> fitness_;  // of the present version
  CUevent begun_ = nullptr;         // the begin of the latest launch, for side lanes
  CUevent launched_ = nullptr;      // the end of the latest launch
};

}  // namespace torpor::executor
