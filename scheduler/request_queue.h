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

// Requests that wait for GPUs. Keeps the queue policy in step with them: an instance stands in the
// queue while it is idle, has a request and is not cold, by the turn of its first request. Counts
// what becomes of requests against their functions' objectives. Not thread-safe; all that it is
// given must outlive it.
class RequestQueue {
 public:
  RequestQueue(NodeState& node, QueuePolicy& policy, const BindingPolicy& binding, TooLate too_late,
               Outbox& outbox);

  // A new request, or one that comes again. Its instance must be known.
  void Add(const Request& request);
  // Takes a waiting request out of its instance; the node's record of the request stays.
  void Remove(const Request& request);
  // Emits Refuse for a waiting request, counts it as missed and forgets it.
  void Refuse(RequestId request, Refusal reason);
  void RefuseAll(Instance& lead, Refusal reason);
  // Applies the node's `too_late` to the instance's first request if that can no longer be answered
  // in time. Returns whether anything was done: the queue's order may be another one then.
  bool StepAside(Instance& lead);
  // Lets an idle instance serve a request that waits for another instance of its function.
  void TakeFromSibling(Instance& lead);

  // To be called when the instance's phase has changed, or where its image is present.
  void Update(Instance& lead);
  // To be called when a waiting instance's image is in other places, or other run times are known.
  void Reorder(const Instance& instance);
  void Reorder(const Function& function);
  // Binds the instance, which may stand in the queue, to `gpu` or to none.
  void Bind(Instance& instance, std::optional<GpuIndex> gpu);
  // Changes the function while none of its instances is in the queue.
  void Change(Function& function, const std::function<void()>& change);

  // Counts an explicit request that is over.
  void Count(const Request& request, bool in_time);
  // Stops counting outcomes that are older than kOutcomeWindow.
  void ForgetOutcomes();

  // As QueuePolicy::First.
  std::vector<InstanceId> First(std::size_t count, const std::vector<GpuIndex>& open = {});
  // Whether a request of `lead`, which holds a lease, is to be served before all in the queue.
  bool IsBeforeAll(const Instance& lead);

  std::size_t size() const { return queued_; }      // instances in the queue
  std::size_t waiting() const { return waiting_; }  // explicit requests, in the queue or not
  // Instances with a request that waits for their image to come. Whoever brings the images removes
  // from it those that need nothing any more.
  std::set<InstanceId>& cold() { return cold_; }

 private:
  bool IsTooLate(const Instance& lead) const;

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
