#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/binding_policy.h"
#include "scheduler/node_state.h"

// The decisions that the scheduler leaves to policies: order of the queue, placement, eviction, and
// binding (binding_policy.h). A policy may keep state but must be deterministic. Policies are
// called from the scheduler's thread only.
namespace torpor::scheduler {

// Where an instance stands in a queue by required request count.
struct Standing {
  double required_count = 0;
  bool is_high = true;  // in the high group, served first
  double alpha = 1;
};

// Orders the instances that wait for a GPU: idle instances with a waiting request.
class QueuePolicy {
 public:
  virtual ~QueuePolicy() = default;

  // The instance begins to wait, or has another first request (after a Remove). The function keeps
  // priority and tenant until Remove.
  virtual void Add(const Instance& instance, const NodeState& node, TimePoint now) = 0;
  // A waiting instance's image is in another place, or other run times are known of the function.
  // The first request and the bound GPU are the same as at Add.
  virtual void Update(const Instance& /*instance*/, const NodeState&) {}
  // The instance stops waiting. Called with the instance as at Add.
  virtual void Remove(const Instance& instance, const NodeState& node, TimePoint now) = 0;
  // Whether no instance waits and nothing is kept of any function.
  virtual bool is_empty() const = 0;

  // Returns the first `count` waiting instances (or all) in the order of service. Unless `open` is
  // empty, instances bound to other GPUs may be left out.
  virtual std::vector<InstanceId> First(std::size_t count, const std::vector<GpuIndex>& open,
                                        const NodeState& node, TimePoint now) = 0;
  // Whether `a`, waiting or not, is to be served before `b`, a waiting instance.
  virtual bool IsBefore(const Instance& a, const Instance& b, const NodeState& node,
                        TimePoint now) const = 0;

  // The function's record has changed: a request is over, older outcomes no longer count, or the
  // objective is new. `in_time`: whether the request was answered within the deadline; nullopt if
  // no request is over.
  virtual void OnOutcome(const FunctionState& /*function*/, std::optional<bool> /*in_time*/,
                         TimePoint /*now*/) {}
  // The function, without a waiting instance, is about to change: drops all that is kept of it.
  virtual void Forget(const FunctionState& /*function*/) {}

  // After Remove, the instance has a GPU for each shard; runs another request there; has given the
  // GPUs back.
  virtual void OnServed(const Instance& /*instance*/, const NodeState&, TimePoint /*now*/) {}
  virtual void OnJoined(const Instance& /*instance*/, const NodeState&, TimePoint /*now*/) {}
  virtual void OnReleased(const Instance& /*instance*/, const NodeState&, TimePoint /*now*/) {}

  // Whether the function's requests are served last because the objective is out of reach.
  virtual bool IsBeyondRescue(const FunctionState& /*function*/) const { return false; }

  // Returns nullopt unless the queue orders by required request count.
  virtual std::optional<Standing> StandingOf(const FunctionState& /*function*/) const {
    return std::nullopt;
  }
};

class PlacementPolicy {
 public:
  virtual ~PlacementPolicy() = default;

  // Returns one of `candidates`, or nullopt if the instance had better wait. The candidates are
  // large enough, in ascending order, never empty, and without a tenant (unless the image is only
  // to be loaded ahead of requests).
  virtual std::optional<GpuIndex> Choose(const Instance& instance,
                                         const std::vector<GpuIndex>& candidates,
                                         const NodeState& node, TimePoint now) = 0;
};

class EvictionPolicy {
 public:
  virtual ~EvictionPolicy() = default;

  // Called again whenever the instance has changed, and only then: a rank may depend on time only
  // in a way that leaves the order of ranks the same.
  virtual EvictionRank Rank(const Instance& instance, GpuIndex gpu,
                            const NodeState& node) const = 0;
};

// The scheduler's policies. No pointer may be null.
struct Policies {
  std::unique_ptr<QueuePolicy> queue;
  std::unique_ptr<PlacementPolicy> placement;
  std::unique_ptr<EvictionPolicy> eviction;
  std::unique_ptr<BindingPolicy> binding = MakeLateBinding();
};

// Treatment of a request that can no longer be answered within the deadline: served in turn; served
// after all requests that can be in time; refused.
enum class TooLate { kServe, kServeLast, kRefuse };

// --- Queues -------------------------------------------------------------------------------------

// First come, first served.
std::unique_ptr<QueuePolicy> MakeFifoQueue();

// The earliest deadline first.
std::unique_ptr<QueuePolicy> MakeDeadlineQueue();

// Section 5.2 and appendix A.3 of the paper.
struct RrcOptions {
  double alpha = 0.5;  // at the start; in [0, 1]
  // Algorithm 2: the factor by which alpha changes, and the least change of the ratio of compliant
  // functions from period to period that changes alpha.
  double scalar = 2;
  double threshold = 0.04;
  Duration period{std::chrono::seconds(40)};
};

// By required request count (RRC): the number of requests in time that a function still needs to
// comply. Two groups: functions that reach compliance with little effort, the largest count first;
// then the other functions, the smallest count first.
//
// Returns a factory of queues that share one alpha: Algorithm 2 follows the compliance of all the
// node's functions, in whichever queue.
using QueueFactory = std::function<std::unique_ptr<QueuePolicy>()>;
QueueFactory RrcQueues(RrcOptions options = {});

// By the latest start with which a request is answered in time if the run takes as long as
// expected. Functions that need more than `rescue_limit` requests in time in a row to comply come
// last, so that too few GPUs serve some functions well instead of all badly.
struct LatestStartOptions {
  double rescue_limit = 200;
};
std::unique_ptr<QueuePolicy> MakeLatestStartQueue(LatestStartOptions options = {});

// A queue for each priority, the highest first, and within a priority for each tenant. Tenants
// share the GPUs' time by weight while they wait; use without competition does not count. `make` is
// called when a tenant's first function of a priority is known.
std::unique_ptr<QueuePolicy> MakeSharedQueue(QueueFactory make);

// --- Placements ---------------------------------------------------------------------------------

// The GPU with the image, if free; else, where there is room, the GPU with the fastest link to the
// image; else the free GPU with the most free memory.
std::unique_ptr<PlacementPolicy> MakeResidentFirstPlacement();

// Algorithm 1 of the paper: the GPU with the image; else the GPU with the fastest link to the
// image; else, from the host, a GPU behind whose PCIe switch no neighbour loads, or only a light
// model.
std::unique_ptr<PlacementPolicy> MakeInterferenceAwarePlacement();

// The GPU with the least expected cost: run time, contention on the way from the host, and
// evictions. Waits for a busy GPU with the image where waiting is cheaper and the deadline leaves
// time.
std::unique_ptr<PlacementPolicy> MakeLookAheadPlacement();

// The GPU with the image, if free; else any free GPU, drawn at random.
std::unique_ptr<PlacementPolicy> MakeRandomPlacement(std::uint64_t seed);

// --- Evictions ----------------------------------------------------------------------------------

// Least recently used.
std::unique_ptr<EvictionPolicy> MakeLruEviction();

// Section 5.4 of the paper: replicas first, then light functions, then heavy ones; within each
// group the least recently used first. A replica is any copy of an image that is on several GPUs.
std::unique_ptr<EvictionPolicy> MakeHeavinessEviction();

// Replicas first, then the image with the least expected cost: rate of use times the extra time of
// a run that must swap in, per byte.
std::unique_ptr<EvictionPolicy> MakeExpectedCostEviction();

}  // namespace torpor::scheduler
