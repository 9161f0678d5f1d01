#pragma once

#include <map>
#include <optional>
#include <set>

#include "scheduler/events.h"
#include "scheduler/gpu_choice.h"
#include "scheduler/gpu_images.h"
#include "scheduler/keep_alives.h"
#include "scheduler/node_state.h"
#include "scheduler/outbox.h"
#include "scheduler/policies.h"

namespace torpor::scheduler {

// Administrators' requests to load images before requests need them. Each ends with the image on
// its way, with a use of it, with a request that has the instance, or with RefuseLoad. Nothing is
// evicted for a load until evictions make room for all of the image. Not thread-safe.
class LoadRequests {
 public:
  LoadRequests(NodeState& node, const GpuChoice& choice, PlacementPolicy& placement,
               GpuImages& images, KeepAlives& keep_alives, Outbox& outbox);

  // Replaces an earlier request for the instance. `gpu`: the only GPU that will do.
  void Add(const Instance& lead, std::optional<GpuIndex> gpu);
  void Forget(const Instance& lead) { wanted_.erase(lead.id); }
  // Whether the shard is yet to be sent for.
  bool IsWanted(const Instance& shard) const;
  // Forgets the request, if there still is one, and emits RefuseLoad.
  void Refuse(const Instance& lead, LoadRefusal reason);
  // Takes every load as far as it gets now. To be called after requests were served.
  void Serve();

 private:
  struct Load {
    std::optional<GpuIndex> gpu;                 // the only one that will do
    std::map<InstanceId, GpuIndex> destination;  // of each shard, once that is decided
    std::set<InstanceId> sent_for;               // shards on their way, or there
  };

  // Returns true if nothing is left to do for it.
  bool Serve(Instance& lead, Load& load);
  std::optional<LoadRefusal> ReasonToRefuse(const Instance& lead, const Load& load) const;
  // Decides where the shards go that have no destination yet; returns false, and decides nothing,
  // unless there is room for all.
  bool ChooseGpus(Instance& lead, Load& load);
  std::optional<GpuIndex> ChooseGpu(const Instance& shard, const Load& load,
                                    const std::set<GpuIndex>& taken);
  // Whether the image is there, or evictions can make room for it now.
  bool HasRoom(const Instance& shard, const Gpu& gpu) const;
  // Returns whether the shard's image is there or on its way.
  bool Send(Instance& shard, Load& load);

  NodeState& node_;
  const GpuChoice& choice_;
  PlacementPolicy& placement_;
  GpuImages& images_;
  KeepAlives& keep_alives_;
  Outbox& outbox_;
  std::map<InstanceId, Load> wanted_;  // by lead shard
};

}  // namespace torpor::scheduler
