#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/binding_policy.h"
#include "scheduler/node_state.h"

// The decisions that the scheduler leaves to others. A policy may keep state of its own, but must
// be deterministic.
namespace torpor::scheduler {

// Where an instance stands in a queue by required request count.
struct Standing {
  double required_count = 0;
  bool is_high = true;  // in the group that goes first
  double alpha = 1;
};

// Orders the instances that wait for a GPU: those with a waiting request and without a lease.
class QueuePolicy {
 public:
  virtual ~QueuePolicy() = default;

  // The instance has begun to wait, or its first request is another one now (a Remove precedes).
  // Until it is removed, its function keeps its priority and its tenant.
  virtual void Add(const Instance& instance, const NodeState& node, TimePoint now) = 0;
  // The instance, which waits, has an image in another place, or more or less is known of its
  // function than when it was added. Its first request and its GPU are the same.
  virtual void Update(const Instance& /*instance*/, const NodeState&) {}
  // It waits no longer. Called with the instance as it was added.
  virtual void Remove(const Instance& instance, const NodeState& node, TimePoint now) = 0;
  // Whether nobody waits and of no function anything is known.
  virtual bool is_empty() const = 0;

  // The first `count` (or all, if they are fewer) of those that wait, in the order in which they
  // are to be served. Unless `open` is empty, those bound to other GPUs may be left out.
  virtual std::vector<InstanceId> First(std::size_t count, const std::vector<GpuIndex>& open,
                                        const NodeState& node, TimePoint now) = 0;
  // Whether `a`, which need not wait in the queue, would be served before `b`, which does.
  virtual bool IsBefore(const Instance& a, const Instance& b, const NodeState& node,
                        TimePoint now) const = 0;

  // What is known of the function has changed: a request is over, earlier ones do not count any
  // more, or the objective is another one. `in_time`: whether that request was answered within its
  // deadline.
  virtual void OnOutcome(const Function& /*function*/, std::optional<bool> /*in_time*/,
                         TimePoint /*now*/) {}
  // The function, no instance of which waits, is about to change. What was known of it does not
  // count any more, for others neither.
  virtual void Forget(const Function& /*function*/) {}

  // The instance, which waits no longer, has a GPU for each shard now; it runs a further request
  // there; it has given them back.
  virtual void OnServed(const Instance& /*instance*/, const NodeState&, TimePoint /*now*/) {}
  virtual void OnJoined(const Instance& /*instance*/, const NodeState&, TimePoint /*now*/) {}
  virtual void OnReleased(const Instance& /*instance*/, const NodeState&, TimePoint /*now*/) {}

  // Whether the function's requests come after all others', because it is beyond rescue.
  virtual bool IsBeyondRescue(const Function& /*function*/) const { return false; }

  // Nothing where the order is another one.
  virtual std::optional<Standing> StandingOf(const Function& /*function*/) const {
    return std::nullopt;
  }
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

  // Asked again whenever something about the instance has changed, and only then: what changes by
  // itself with time must change for all alike.
  virtual EvictionRank Rank(const Instance& instance, GpuIndex gpu,
                            const NodeState& node) const = 0;
};

// One of each; none may be null.
struct Policies {
  std::unique_ptr<QueuePolicy> queue;
  std::unique_ptr<PlacementPolicy> placement;
  std::unique_ptr<EvictionPolicy> eviction;
  std::unique_ptr<BindingPolicy> binding = MakeLateBinding();
};

// What becomes of a request that can no longer be answered within its deadline: served in its turn;
// served when none waits that can be answered in time; or refused.
enum class TooLate { kServe, kServeLast, kRefuse };

// --- Queues -------------------------------------------------------------------------------------

// First come, first served.
std::unique_ptr<QueuePolicy> MakeFifoQueue();

// The earliest deadline first.
std::unique_ptr<QueuePolicy> MakeDeadlineQueue();

// Section 5.2 and appendix A.3 of the paper.
struct RrcOptions {
  double alpha = 0.5;  // at the start; in [0, 1]
  // Algorithm 2: factor by which alpha changes, change of the ratio of compliant functions from one
  // period to the next that is needed for it.
  double scalar = 2;
  double threshold = 0.04;
  Duration period{std::chrono::seconds(40)};
};

// By required request count (RRC): how many requests in time a function still needs to comply. In
// two groups: functions that reach compliance with little effort, of them first who needs most;
// then the others, of them first who needs least.
//
// Makes such queues with one alpha: Algorithm 2 follows how many of all the node's functions
// comply, in whichever queue they stand.
using QueueFactory = std::function<std::unique_ptr<QueuePolicy>()>;
QueueFactory RrcQueues(RrcOptions options = {});

// The one first that must start first to be answered in time, if it takes what is expected.
// Functions that need more than `rescue_limit` requests in time in a row to comply come after the
// others: too few GPUs are not shared out so that nobody complies.
struct LatestStartOptions {
  double rescue_limit = 200;
};
std::unique_ptr<QueuePolicy> MakeLatestStartQueue(LatestStartOptions options = {});

// A queue for each priority of functions, the highest first, and in each for each tenant: while
// tenants wait they share the GPUs' time by their weights, whatever each used before. Queues are
// made when they are needed.
std::unique_ptr<QueuePolicy> MakeSharedQueue(QueueFactory make);

// --- Placements ---------------------------------------------------------------------------------

// Where the image is, if that GPU is free; else where it comes fastest from there, if there is
// room; else the free GPU with the most free memory.
std::unique_ptr<PlacementPolicy> MakeResidentFirstPlacement();

// Algorithm 1 of the paper: where the image is; else where it comes fastest from another GPU; else
// from the host where no neighbour's image, or a light one, comes through the same PCIe switch.
std::unique_ptr<PlacementPolicy> MakeInterferenceAwarePlacement();

// Where a run is expected to cost the least: its time, with what shares the way from the host, and
// what is evicted for it. Rather than that it waits for a busy GPU with the image, where that is
// cheaper and there is time.
std::unique_ptr<PlacementPolicy> MakeLookAheadPlacement();

// Where the image is, if that GPU is free; else any.
std::unique_ptr<PlacementPolicy> MakeRandomPlacement(std::uint64_t seed);

// --- Evictions ----------------------------------------------------------------------------------

// Least recently used.
std::unique_ptr<EvictionPolicy> MakeLruEviction();

// Section 5.4 of the paper: of images that are on several GPUs all but one, then those whose
// swapping does not slow them down, then the others; of each the least recently used first.
std::unique_ptr<EvictionPolicy> MakeHeavinessEviction();

// Of images that are on several GPUs all but one, then what is expected to cost the least: by how
// often the image is used, how much longer a run takes that must swap it in, and its size.
std::unique_ptr<EvictionPolicy> MakeExpectedCostEviction();

}  // namespace torpor::scheduler
