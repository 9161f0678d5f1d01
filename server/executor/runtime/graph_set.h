#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "server/executor/runtime/graph.h"
#include "server/executor/runtime/stream_set.h"

namespace torpor::executor {

// The graphs of one session, and the streams on which their branches run. Of the thread that
// executes the session's calls.
class GraphSet {
 public:
  // Carries out a command as if it came in a batch.
  using RunCommand = std::function<cuda_api::CallStatus(const wire::GraphCommand&)>;

  // All outlive this.
  GraphSet(const Device& device, StreamSet& streams, RunCommand run)
      : device_(device), streams_(streams), run_(std::move(run)) {}
  // The session's work is done.
  ~GraphSet();
  GraphSet(const GraphSet&) = delete;
  GraphSet& operator=(const GraphSet&) = delete;

  absl::Status Create(std::uint64_t id);
  absl::Status AddNodes(const wire::GraphAddNodes& command);
  absl::Status SetNode(const wire::GraphSetNode& command);
  // Launches that still run go on.
  absl::Status Destroy(std::uint64_t id);

  cuda_api::CallStatus Launch(std::uint64_t id, std::uint64_t stream);

 private:
  absl::StatusOr<Graph*> Find(std::uint64_t id) const;
  // ResourceExhausted if the session may not have so much more.
  absl::Status CheckRoom(std::size_t nodes, Bytes bytes) const;
  // Does `work` on the graph and counts what has become of it.
  template <typename Work>
  absl::Status Change(Graph& graph, const Work& work);
  // As many as the graph with the most lanes needs.
  CUresult MakeSideLanes(std::size_t count);

  const Device& device_;
  StreamSet& streams_;
  const RunCommand run_;
  absl::flat_hash_map<std::uint64_t, std::unique_ptr<Graph>> graphs_;
  std::size_t nodes_ = 0;             // of all graphs
  Bytes bytes_ = 0;                   // the same
  std::vector<CUstream> side_lanes_;  // every graph's lanes but the first
};

}  // namespace torpor::executor
