#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "scheduler/node_state.h"

// The three decisions that the scheduler leaves to others. A policy may keep state of its own, but
// must be deterministic.
namespace torpor::scheduler {

class QueuePolicy {
 public:
  virtual ~QueuePolicy() = default;

  // All waiting requests, the one to be served first at the front.
  virtual std::vector<RequestId> Order(const NodeState& node, TimePoint now) = 0;
};

class PlacementPolicy {
 public:
  virtual ~PlacementPolicy() = default;

  // One of `candidates` (never empty: GPUs large enough, in ascending order, and without a tenant
  // unless the image is only to be loaded ahead of its requests), or nothing if the instance had
  // better wait.
  virtual std::optional<GpuIndex> Choose(const Instance& instance,
                                         const std::vector<GpuIndex>& candidates,
                                         const NodeState& node, TimePoint now) = 0;
};

class EvictionPolicy {
 public:
  virtual ~EvictionPolicy() = default;

  // `candidates` (instances that are present on the GPU and are no tenants, in ascending order),
  // the one to be evicted first at the front.
  virtual std::vector<InstanceId> Order(GpuIndex gpu, std::vector<InstanceId> candidates,
                                        const NodeState& node, TimePoint now) = 0;
};

struct Policies {
  std::unique_ptr<QueuePolicy> queue;
  std::unique_ptr<PlacementPolicy> placement;
  std::unique_ptr<EvictionPolicy> eviction;
};

// First come, first served.
std::unique_ptr<QueuePolicy> MakeFifoQueue();

// Where the image is, if that GPU is free; else where it comes fastest from there, if there is
// room; else the free GPU with the most free memory.
std::unique_ptr<PlacementPolicy> MakeResidentFirstPlacement();

// Least recently used.
std::unique_ptr<EvictionPolicy> MakeLruEviction();

}  // namespace torpor::scheduler
