#pragma once

#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "scheduler/binding_policy.h"
#include "scheduler/node_state.h"
#include "scheduler/policies.h"

namespace torpor::scheduler {

// Chooses GPUs for instances: where an instance may run, and where to run now. Changes nothing in
// the node. Not thread-safe.
class GpuChoice {
 public:
  // A GPU for each shard in the order of choice; empty if any shard found no GPU.
  struct Chosen {
    std::vector<std::pair<Instance*, GpuIndex>> gpus;
    // GPUs are free, but the placement prefers to wait for a better GPU.
    bool is_waiting_better = false;
  };

  // `evicts`: whether room can be made on a GPU that an instance may run on.
  GpuChoice(NodeState& node, const BindingPolicy& binding, PlacementPolicy& placement, bool evicts);

  // Whether the shard may run on the GPU once that is free; and once its executor is there, too.
  bool MayRunOn(const Instance& shard, const Gpu& gpu) const;
  bool MayEverRunOn(const Instance& shard, const Gpu& gpu) const;
  bool MayRunOnAny(const Instance& lead, const std::vector<GpuIndex>& gpus) const;
  // Whether every shard may run on a GPU of its own, busy or not: else waiting is in vain.
  bool MayRunAnywhere(Instance& lead) const;

  // GPUs outside of `claimed` that are free, become free, or have an implicit lease.
  std::vector<GpuIndex> OpenGpus(const std::set<GpuIndex>& claimed) const;
  // Chooses a free GPU outside of `claimed` for every shard.
  Chosen Choose(Instance& lead, const std::set<GpuIndex>& claimed, TimePoint now);

 private:
  // The order in which shards choose: resident shards before shards that may go anywhere, and
  // without eviction larger shards before smaller ones, which fit more GPUs.
  std::vector<Instance*> InOrder(Instance& lead) const;
  std::vector<GpuIndex> FreeGpusFor(const Instance& shard, const std::set<GpuIndex>& taken) const;

  NodeState& node_;
  const BindingPolicy& binding_;
  PlacementPolicy& placement_;
  const bool evicts_;
};

}  // namespace torpor::scheduler
