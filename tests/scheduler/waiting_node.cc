#include "tests/scheduler/waiting_node.h"

#include <algorithm>

namespace torpor::scheduler {

void WaitingNode::AddFunction(std::uint64_t id, Objective objective) {
  FunctionState& function = node_.functions[FunctionId{id}];
  function.id = FunctionId{id};
  function.objective = objective;
  Instance& instance = node_.instances[InstanceId{id}];
  instance.id = InstanceId{id};
  instance.lead = instance.id;
  instance.function = function.id;
  queue_->OnOutcome(function, std::nullopt, {});
}

void WaitingNode::Wait(std::uint64_t id, TimePoint arrival, TimePoint deadline) {
  const Request request{.request = RequestId{next_},
                        .instance = InstanceId{id},
                        .turn = {.arrival = arrival, .sequence = next_},
                        .deadline = deadline};
  ++next_;
  node_.requests[request.request] = request;
  Instance& waiting = instance(id);
  waiting.waiting.emplace(request.turn, request.request);
  waiting.queued_as = request.turn;
  now_ = std::max(now_, arrival);
  queue_->Add(waiting, node_, now_);
}

void WaitingNode::Leave(std::uint64_t id) {
  Instance& waiting = instance(id);
  queue_->Remove(waiting, node_, now_);
  waiting.queued_as.reset();
  waiting.waiting.clear();
}

void WaitingNode::Serve(std::uint64_t id, TimePoint now) {
  now_ = std::max(now_, now);
  Leave(id);
  queue_->OnServed(instance(id), node_, now_);
}

void WaitingNode::Release(std::uint64_t id, TimePoint now) {
  now_ = std::max(now_, now);
  queue_->OnReleased(instance(id), node_, now_);
}

void WaitingNode::Change(std::uint64_t id, const std::function<void(FunctionState&)>& change) {
  Instance& changed = instance(id);
  if (changed.queued_as) queue_->Remove(changed, node_, now_);
  queue_->Forget(function(id));
  change(function(id));
  queue_->OnOutcome(function(id), std::nullopt, {});
  if (changed.queued_as) queue_->Add(changed, node_, now_);
}

void WaitingNode::Finish(std::uint64_t id, bool in_time, TimePoint now) {
  FunctionState& finished = function(id);
  finished.recent.Add(in_time, now);
  queue_->OnOutcome(finished, in_time, now);
}

std::vector<std::uint64_t> WaitingNode::First(std::size_t count, TimePoint now) {
  std::vector<std::uint64_t> first;
  for (const InstanceId id : queue_->First(count, {}, node_, now)) first.push_back(id.value);
  return first;
}

}  // namespace torpor::scheduler
