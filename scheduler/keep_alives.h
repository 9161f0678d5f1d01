#pragma once

#include <unordered_map>
#include <utility>

#include "absl/container/btree_set.h"
#include "scheduler/gpu_images.h"
#include "scheduler/node_state.h"
#include "scheduler/outbox.h"

namespace torpor::scheduler {

// Evicts images that have not been used for their function's keep_alive. Not thread-safe.
class KeepAlives {
 public:
  KeepAlives(NodeState& node, GpuImages& images, Outbox& outbox);

  // Starts the instance's keep-alive at the last use, or drops it if the function has none.
  void Note(const Instance& lead);
  void Forget(const Instance& lead);
  // Evicts due images unless in use, wanted or pinned, and asks for a WakeUp at the next end.
  void End();

 private:
  NodeState& node_;
  GpuImages& images_;
  Outbox& outbox_;
  std::unordered_map<InstanceId, TimePoint> end_of_;
  absl::btree_set<std::pair<TimePoint, InstanceId>> ends_;  // the same, by time
};

}  // namespace torpor::scheduler
