#include "scheduler/request_queue.h"

#include <algorithm>
#include <iterator>
#include <tuple>

namespace torpor::scheduler {

RequestQueue::RequestQueue(NodeState& node, QueuePolicy& policy, const BindingPolicy& binding,
                           TooLate too_late, Outbox& outbox)
    : node_(node), policy_(policy), binding_(binding), too_late_(too_late), outbox_(outbox) {}

void RequestQueue::Add(const Request& request) {
  node_.requests[request.request] = request;
  Instance& instance = node_.instances.at(request.instance);
  instance.waiting.emplace(request.turn, request.request);
  if (!request.is_implicit) {
    ++waiting_;
    ++node_.functions.at(instance.function).waiting;
  }
  Update(instance);
}

void RequestQueue::Remove(const Request& request) {
  Instance& instance = node_.instances.at(request.instance);
  instance.waiting.erase(request.turn);
  if (!request.is_implicit) {
    --waiting_;
    --node_.functions.at(instance.function).waiting;
  }
  Update(instance);
}

void RequestQueue::Refuse(RequestId id, Refusal reason) {
  const Request request = node_.requests.at(id);
  Count(request, false);
  Remove(request);
  node_.requests.erase(id);
  outbox_.Add(scheduler::Refuse{id, reason});
}

void RequestQueue::RefuseAll(Instance& lead, Refusal reason) {
  while (!lead.waiting.empty()) Refuse(lead.waiting.begin()->second, reason);
}

void RequestQueue::Update(Instance& lead) {
  const bool waits = lead.tenancy.is_idle() && !lead.waiting.empty();
  const bool is_cold = binding_.IsCold(lead);
  if (waits && is_cold) cold_.insert(lead.id);
  const std::optional<Turn> turn =
      waits && !is_cold ? std::optional(lead.waiting.begin()->first) : std::nullopt;
  if (turn == lead.queued_as) return;
  if (lead.queued_as) {
    policy_.Remove(lead, node_, outbox_.now());
    --queued_;
  } else {
    lead.wait = {.since = outbox_.now()};
  }
  lead.queued_as = turn;
  if (!turn) return;
  policy_.Add(lead, node_, outbox_.now());
  ++queued_;
}

void RequestQueue::Reorder(const Instance& instance) {
  if (instance.queued_as) policy_.Update(instance, node_);
}

void RequestQueue::Reorder(const FunctionState& function) {
  for (const InstanceId id : function.instances) Reorder(node_.instances.at(id));
}

void RequestQueue::Bind(Instance& instance, std::optional<GpuIndex> gpu) {
  if (instance.bound_gpu == gpu) return;
  if (instance.queued_as) policy_.Remove(instance, node_, outbox_.now());
  instance.bound_gpu = gpu;
  if (instance.queued_as) policy_.Add(instance, node_, outbox_.now());
}

void RequestQueue::Change(FunctionState& function, const std::function<void()>& change) {
  std::vector<const Instance*> queued;
  for (const InstanceId id : function.instances) {
    const Instance& instance = node_.instances.at(id);
    if (instance.queued_as) queued.push_back(&instance);
  }
  for (const Instance* const instance : queued) policy_.Remove(*instance, node_, outbox_.now());
  policy_.Forget(function);
  change();
  policy_.OnOutcome(function, std::nullopt, outbox_.now());
  for (const Instance* const instance : queued) policy_.Add(*instance, node_, outbox_.now());
}

Instance& RequestQueue::ChooseInstance(const FunctionState& function) {
  const auto rank = [this](InstanceId id) {
    const Instance& instance = node_.instances.at(id);
    return std::tuple(instance.health, instance.waiting.size() + instance.tenancy.requests.size(),
                      instance.image.is_present() ? 0 : 1);
  };
  return node_.instances.at(
      *std::min_element(function.instances.begin(), function.instances.end(),
                        [&](InstanceId a, InstanceId b) { return rank(a) < rank(b); }));
}

Health RequestQueue::BestHealthOf(const FunctionState& function) const {
  Health best = Health::kDown;
  for (const InstanceId id : function.instances) {
    best = std::min(best, node_.instances.at(id).health);
  }
  return best;
}

std::vector<RequestId> RequestQueue::ForAnyOf(const Instance& lead) const {
  std::vector<RequestId> requests;
  for (const auto& [turn, request] : lead.waiting) {
    if (node_.requests.at(request).is_for_any) requests.push_back(request);
  }
  return requests;
}

void RequestQueue::Move(RequestId id, Instance& to) {
  Request request = node_.requests.at(id);
  Remove(request);
  request.instance = to.id;
  Add(request);
}

void RequestQueue::TakeFromSibling(Instance& lead) {
  const FunctionState& function = node_.FunctionOf(lead);
  if (function.instances.size() == 1 || lead.health > BestHealthOf(function)) return;
  const Instance* busiest = nullptr;
  for (const InstanceId id : function.instances) {
    const Instance& sibling = node_.instances.at(id);
    if (ForAnyOf(sibling).empty()) continue;
    if (sibling.waiting.size() > (busiest ? busiest->waiting.size() : 0)) busiest = &sibling;
  }
  if (busiest) Move(ForAnyOf(*busiest).front(), lead);
}

void RequestQueue::Rebalance(const FunctionState& function) {
  if (function.instances.size() == 1) return;
  const Health best = BestHealthOf(function);
  for (const InstanceId id : function.instances) {
    const Instance& instance = node_.instances.at(id);
    if (instance.health == best) continue;
    for (const RequestId request : ForAnyOf(instance)) Move(request, ChooseInstance(function));
  }
  for (const InstanceId id : function.instances) {
    Instance& instance = node_.instances.at(id);
    if (instance.tenancy.is_idle() && instance.waiting.empty()) TakeFromSibling(instance);
  }
}

void RequestQueue::Forget(const FunctionState& function) {
  policy_.Forget(function);
  for (auto end = outcome_ends_.begin(); end != outcome_ends_.end();) {
    end = end->second == function.id ? outcome_ends_.erase(end) : std::next(end);
  }
}

void RequestQueue::Count(const Request& request, bool in_time) {
  if (request.is_implicit) return;
  FunctionState& function = node_.functions.at(node_.instances.at(request.instance).function);
  ++function.finished;
  if (in_time) ++function.in_time;
  function.recent.Add(in_time, outbox_.now());
  if (function.recent.finished() == 1) {
    outcome_ends_.emplace(*function.recent.next_end(), function.id);
  }
  policy_.OnOutcome(function, in_time, outbox_.now());
  Reorder(function);
}

void RequestQueue::ForgetOutcomes() {
  while (!outcome_ends_.empty() && outcome_ends_.begin()->first <= outbox_.now()) {
    FunctionState& function = node_.functions.at(outcome_ends_.begin()->second);
    outcome_ends_.erase(outcome_ends_.begin());
    function.recent.Forget(outbox_.now());
    const std::optional<TimePoint> next = function.recent.next_end();
    if (next) outcome_ends_.emplace(*next, function.id);
    policy_.OnOutcome(function, std::nullopt, outbox_.now());
    Reorder(function);
  }
}

std::vector<InstanceId> RequestQueue::First(std::size_t count, const std::vector<GpuIndex>& open) {
  return policy_.First(count, open, node_, outbox_.now());
}

bool RequestQueue::IsBeforeAll(const Instance& lead) {
  const std::vector<InstanceId> first = First(1);
  return first.empty() ||
         policy_.IsBefore(lead, node_.instances.at(first.front()), node_, outbox_.now());
}

bool RequestQueue::IsTooLate(const Instance& lead) const {
  const Request& request = node_.FirstOf(lead);
  if (request.is_implicit || request.deadline == TimePoint::max()) return false;
  // A run that takes longer than the deadline allows is not late by waiting: one that is served at
  // once shows whether a run still takes so long.
  const Duration run = std::min(node_.ExpectedRun(lead), request.deadline - request.turn.arrival);
  return outbox_.now() + run > request.deadline;
}

bool RequestQueue::StepAside(Instance& lead) {
  if (too_late_ == TooLate::kServe || !IsTooLate(lead)) return false;
  Request request = node_.FirstOf(lead);
  if (too_late_ == TooLate::kRefuse) {
    Refuse(request.request, Refusal::kTooLate);
    return true;
  }
  if (std::exchange(request.turn.is_late, true)) return false;
  const Wait wait = lead.wait;
  Remove(node_.requests.at(request.request));
  Add(request);
  lead.wait = wait;
  return true;
}

}  // namespace torpor::scheduler
