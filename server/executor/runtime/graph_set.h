#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "server/executor/runtime/session_graph.h"
#include "server/executor/runtime/stream_set.h"

namespace torpor::executor {

// The graphs of a session, and the streams on which branches run. Not thread-safe; call on the
// thread that executes the session's calls.
class GraphSet {
 public:
  // Carries out a command as if it came in a batch.
  using RunCommand = std::function<cuda_api::CallStatus(const wire::GraphCommand&)>;

  // All must outlive this.
  GraphSet(const Device& device, StreamSet& streams, RunCommand run)
      : device_(device), streams_(streams), run_(std::move(run)) {}
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

  // Issues the graph's commands on the session's stream `stream`; see SessionGraph::Launch.
  cuda_api::CallStatus Launch(std::uint64_t id, std::uint64_t stream);

 private:
  absl::StatusOr<SessionGraph*> Find(std::uint64_t id) const;
  // Returns ResourceExhausted if so many more nodes and bytes exceed the session's bounds.
  absl::Status CheckRoom(std::size_t nodes, Bytes bytes) const;
  // Does `work` on the graph and updates nodes_ and bytes_.
  template <typename Work>
  absl::Status Change(SessionGraph& graph, const Work& work);
  // Makes side lanes until there are `count`.
  CUresult MakeSideLanes(std::size_t count);

  const Device& device_;
  StreamSet& streams_;
  const RunCommand run_;
  absl::flat_hash_map<std::uint64_t, std::unique_ptr<SessionGraph>> graphs_;
  std::size_t nodes_ = 0;             // of all graphs
  Bytes bytes_ = 0;                   // of all graphs
  std::vector<CUstream> side_lanes_;  // lanes 1 and on, for all graphs alike
};

}  // namespace torpor::executor
