#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/container/btree_set.h"
#include "scheduler/binding_policy.h"
#include "scheduler/node_state.h"
#include "scheduler/outbox.h"
#include "scheduler/policies.h"

namespace torpor::scheduler {

// Requests that wait for GPUs. Keeps the queue policy in step: an instance stands in the queue
// while idle, with a request and not cold, by the turn of the first request. Counts outcomes of
// requests against the functions' objectives. Not thread-safe; all arguments must outlive the
// queue.
class RequestQueue {
 public:
  RequestQueue(NodeState& node, QueuePolicy& policy, const BindingPolicy& binding, TooLate too_late,
               Outbox& outbox);

  // Adds a new or returning request of a known instance.
  void Add(const Request& request);
  // Takes a waiting request out of the instance; the node's record of the request stays.
  void Remove(const Request& request);
  // Emits Refuse for a waiting request, counts it as missed and forgets it.
  void Refuse(RequestId request, Refusal reason);
  void RefuseAll(Instance& lead, Refusal reason);
  // Applies `too_late` to the instance's first request if an answer in time is no longer possible.
  // Returns whether anything was done: the order of the queue may have changed.
  bool StepAside(Instance& lead);

  // Returns the instance for a request that any may serve: of those with the best health the least
  // busy, if possible with an image on a GPU. The function must have an instance.
  Instance& ChooseInstance(const FunctionState& function);
  // Moves a request that any instance may serve from the function's busiest instance to `lead`,
  // unless another instance's health is better.
  void TakeFromSibling(Instance& lead);
  // Moves requests that any instance may serve to instances of the best health. To be called after
  // a change of an instance's health.
  void Rebalance(const FunctionState& function);

  // To be called after a change of the instance's phase or of the image's copies.
  void Update(Instance& lead);
  // To be called after a change of the image's copies or of known run times.
  void Reorder(const Instance& instance);
  void Reorder(const FunctionState& function);
  // Binds the instance to `gpu`, or unbinds it.
  void Bind(Instance& instance, std::optional<GpuIndex> gpu);
  // Calls `change` while no instance of the function is in the queue.
  void Change(FunctionState& function, const std::function<void()>& change);

  // Drops what is kept of a function without instances.
  void Forget(const FunctionState& function);

  // Counts an explicit request that is over.
  void Count(const Request& request, bool in_time);
  // Drops outcomes older than the window.
  void ForgetOutcomes();

  // As QueuePolicy::First.
  std::vector<InstanceId> First(std::size_t count, const std::vector<GpuIndex>& open = {});
  // Whether `lead`, which holds a lease, is to be served before all in the queue.
  bool IsBeforeAll(const Instance& lead);

  std::size_t size() const { return queued_; }      // instances in the queue
  std::size_t waiting() const { return waiting_; }  // explicit requests, in the queue or not
  // Instances whose requests wait for the image to come. ColdStarts removes instances when done.
  std::set<InstanceId>& cold() { return cold_; }

 private:
  bool IsTooLate(const Instance& lead) const;
  Health BestHealthOf(const FunctionState& function) const;
  // The instance's waiting requests that any instance may serve, in their order.
  std::vector<RequestId> ForAnyOf(const Instance& lead) const;
  void Move(RequestId id, Instance& to);

  NodeState& node_;
  QueuePolicy& policy_;
  const BindingPolicy& binding_;
  const TooLate too_late_;
  Outbox& outbox_;
  std::size_t queued_ = 0;
  std::size_t waiting_ = 0;
  std::set<InstanceId> cold_;
  // When the oldest outcome of each function that has any stops to count.
  absl::btree_set<std::pair<TimePoint, FunctionId>> outcome_ends_;
};

}  // namespace torpor::scheduler
