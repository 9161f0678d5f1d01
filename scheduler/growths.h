#pragma once

#include <optional>
#include <vector>

#include "scheduler/binding_policy.h"
#include "scheduler/gpu_images.h"
#include "scheduler/node_state.h"
#include "scheduler/outbox.h"
#include "scheduler/request_queue.h"

namespace torpor::scheduler {

// Growths of images that wait for room. Answers each exactly once, by AllowGrowth or RefuseGrowth.
// Not thread-safe.
class Growths {
 public:
  Growths(NodeState& node, BindingPolicy& binding, RequestQueue& queue, GpuImages& images,
          Outbox& outbox);

  // Whether a growth of the shard waits.
  bool HasFor(InstanceId shard) const;
  void Add(const GrowthWanted& growth) { waiting_.push_back(growth); }
  // Answers growths that have room, the oldest first, and evicts for the rest.
  void Retry();

 private:
  // Returns whether the growth was answered.
  bool Try(const GrowthWanted& growth);
  bool IsTooLarge(const Instance& shard, Bytes bytes) const;
  // Whether growing a copy is worth evictions: a tenant's copy, or a pinned one that fits.
  bool IsNeeded(const Instance& shard, GpuIndex gpu, Bytes bytes) const;

  NodeState& node_;
  BindingPolicy& binding_;
  RequestQueue& queue_;
  GpuImages& images_;
  Outbox& outbox_;
  std::vector<GrowthWanted> waiting_;  // oldest first
};

}  // namespace torpor::scheduler
