#pragma once

#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "scheduler/binding_policy.h"
#include "scheduler/node_state.h"
#include "scheduler/policies.h"

namespace torpor::scheduler {

// Which GPUs an instance may run on, and which of them it gets. Reads the node and changes nothing.
// Not thread-safe.
class GpuChoice {
 public:
  // A GPU for each shard, in the order in which they were chosen; or none for any.
  struct Chosen {
    std::vector<std::pair<Instance*, GpuIndex>> gpus;
    // Nothing was chosen although GPUs are free: the placement prefers to wait for another one.
    bool is_waiting_better = false;
  };

  // `evicts`: whether room can be made on a GPU that an instance may run on.
  GpuChoice(NodeState& node, const BindingPolicy& binding, PlacementPolicy& placement, bool evicts);

  // Whether the shard may run on the GPU once that is free.
  bool MayRunOn(const Instance& shard, const Gpu& gpu) const;
  bool MayRunOnAny(const Instance& lead, const std::vector<GpuIndex>& gpus) const;
  // Whether waiting can help: there is a GPU for each shard, busy or not, that it may run on.
  bool MayRunAnywhere(Instance& lead) const;

  // GPUs outside of `claimed` that are free, become free, or have an implicit lease.
  std::vector<GpuIndex> OpenGpus(const std::set<GpuIndex>& claimed) const;
  // Chooses a free GPU outside of `claimed` for every shard.
  Chosen Choose(Instance& lead, const std::set<GpuIndex>& claimed, TimePoint now);

 private:
  // The order in which shards choose. A shard that is on a GPU already is not driven from it by one
  // that may go to any; nor, where nothing is evicted, the larger from the only GPU with room by
  // the smaller.
  std::vector<Instance*> InOrder(Instance& lead) const;
  std::vector<GpuIndex> FreeGpusFor(const Instance& shard, const std::set<GpuIndex>& taken) const;

  NodeState& node_;
  const BindingPolicy& binding_;
  PlacementPolicy& placement_;
  const bool evicts_;
};

}  // namespace torpor::scheduler
