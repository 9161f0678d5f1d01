#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "server/executor/image/device_image.h"
#include "server/executor/runtime/driver_graph.h"
#include "server/executor/runtime/session_graph.h"
#include "server/executor/runtime/stream_set.h"

namespace torpor::executor {

// The graphs of a session, and the streams on which branches run. Not thread-safe; call on the
// thread that executes the session's calls.
class GraphSet {
 public:
  // Carries out a command as if it came in a batch.
  using RunCommand = std::function<cuda_api::CallStatus(const wire::GraphCommand&)>;

  // All must outlive this. A graph that is launched again unchanged becomes a graph of the driver
  // while the session's `image` stays in place.
  GraphSet(const Device& device, StreamSet& streams, DeviceImage& image, RunCommand run)
      : device_(device), streams_(streams), image_(image), run_(std::move(run)) {}
  // All of the session's work must be done.
  ~GraphSet();
  GraphSet(const GraphSet&) = delete;
  GraphSet& operator=(const GraphSet&) = delete;

  // The client chooses ids. Commands with an unknown id get NotFound.
  absl::Status Create(std::uint64_t id);
  absl::Status AddNodes(const wire::GraphAddNodes& command);
  absl::Status SetNode(const wire::GraphSetNode& command);
  // Launches under way go on.
  absl::Status Destroy(std::uint64_t id);

  // Issues the graph's commands on the session's stream `stream`, or the driver's graph of all; see
  // SessionGraph::Launch.
  cuda_api::CallStatus Launch(std::uint64_t id, std::uint64_t stream);

  bool empty() const { return graphs_.empty(); }
  // Notes that kernels or other objects of the session may have changed: graphs of the driver are
  // made again.
  void NoteChange() { ++changes_; }
  // Notes that the session has given back the libraries' handles.
  void NoteReleasedLibraries() { ++library_changes_; }
  // Drops all graphs of the driver: the image leaves this GPU, and all work is done.
  void EndResidency();

  // Of graphs of the driver, in the life of this.
  struct Counts {
    std::uint64_t captured = 0;
    std::uint64_t launched = 0;
  };
  const Counts& driver_graphs() const { return counts_; }

 private:
  // What the driver's graph depends on, at some time.
  struct Stamp {
    std::uint64_t version = 0;
    std::uint64_t changes = 0;
    std::uint64_t library_changes = 0;
    std::uint64_t removals = 0;  // of memory
    bool operator==(const Stamp&) const = default;
  };
  struct Graph {
    explicit Graph(const Device& device) : commands(device), driver(device) {}
    SessionGraph commands;
    DriverGraph driver;
    Stamp made;                    // when `driver` was made
    std::optional<Stamp> latest;   // at the latest launch
    std::optional<Stamp> refused;  // when the driver could make no graph
    std::uint64_t noted_in = 0;    // the latest recording (ImageTouches) of the commands' memory
  };

  cuda_api::CallStatus LaunchOn(Graph& graph, CUstream origin);
  // Makes the driver's graph ready if that is worth while. Returns whether the graph is ready.
  bool Prepare(Graph& graph);
  bool Capture(Graph& graph);
  // Issues the nodes as there is room (PendingWork).
  cuda_api::CallStatus IssueInTurn(Graph& graph, CUstream origin);
  // Issues the nodes; `begin` is called with the lane of each command, and may end the launch.
  template <typename Begin>
  cuda_api::CallStatus IssueNodes(Graph& graph, CUstream origin, const Begin& begin);
  absl::StatusOr<Graph*> Find(std::uint64_t id) const;
  // Returns ResourceExhausted if so many more nodes and bytes exceed the session's bounds.
  absl::Status CheckRoom(std::size_t nodes, Bytes bytes) const;
  // Does `work` on the graph and updates nodes_ and bytes_.
  template <typename Work>
  absl::Status Change(SessionGraph& graph, const Work& work);
  // Makes side lanes until there are `count`.
  CUresult MakeSideLanes(std::size_t count);

  const Device& device_;
  StreamSet& streams_;
  DeviceImage& image_;
  const RunCommand run_;
  absl::flat_hash_map<std::uint64_t, std::unique_ptr<Graph>> graphs_;
  std::size_t nodes_ = 0;             // of all graphs
  Bytes bytes_ = 0;                   // of all graphs
  std::vector<CUstream> side_lanes_;  // lanes 1 and on, for all graphs alike
  CUstream capture_lane_ = nullptr;   // lane 0 of captures
  std::uint64_t changes_ = 0;
  std::uint64_t library_changes_ = 0;
  Counts counts_;
};

}  // namespace torpor::executor
