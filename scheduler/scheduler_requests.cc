#include <algorithm>
#include <utility>

#include "scheduler/scheduler.h"

// Requests, until they have a GPU and when they are over.
namespace torpor::scheduler {

void Scheduler::Handle(const RequestArrived& event) {
  Instance& instance = InstanceFor(event);
  const Function& function = node_.FunctionOf(instance);
  Request request{.request = event.request,
                  .instance = instance.id,
                  .turn = {.arrival = event.arrival.value_or(now_), .sequence = next_sequence_++},
                  .deadline = event.deadline,
                  .is_implicit = event.is_implicit,
                  .is_for_any = !event.instance};
  const bool has_objective = function.objective.deadline != Duration::max() && !event.is_implicit;
  if (event.deadline == TimePoint::max() && has_objective) {
    request.deadline = request.turn.arrival + function.objective.deadline;
  }
  const bool is_new = !event.arrival;
  if (!is_new) TakeBack(event.request);
  const std::optional<Refusal> reason = is_new ? ReasonToRefuse(request) : std::nullopt;
  if (reason) {
    Count(request, false);
    actions_.emplace_back(Refuse{request.request, *reason});
    return;
  }
  Enqueue(request);
  if (IsTooLarge(instance)) RefuseWaiting(request.request, Refusal::kTooLarge);
}

Instance& Scheduler::InstanceFor(const RequestArrived& event) {
  if (event.instance) return node_.instances.at(event.instance);
  const auto load = [](const Instance& instance) {
    const bool is_present =
        std::any_of(instance.copies.begin(), instance.copies.end(),
                    [](const auto& copy) { return copy.second.state == Copy::State::kPresent; });
    return std::pair(instance.waiting.size() + instance.in_flight.size(), is_present ? 0 : 1);
  };
  const std::vector<InstanceId>& instances = node_.functions.at(event.function).instances;
  return node_.instances.at(
      *std::min_element(instances.begin(), instances.end(), [&](InstanceId a, InstanceId b) {
        return load(node_.instances.at(a)) < load(node_.instances.at(b));
      }));
}

std::optional<Refusal> Scheduler::ReasonToRefuse(const Request& request) const {
  if (request.is_implicit) return std::nullopt;
  const Function& function = node_.FunctionOf(node_.instances.at(request.instance));
  const bool is_full = (function.max_waiting > 0 && function.waiting >= function.max_waiting) ||
                       (options_.max_waiting > 0 && waiting_ >= options_.max_waiting);
  return is_full ? std::optional(Refusal::kQueueFull) : std::nullopt;
}

void Scheduler::Handle(const RequestGone& event) {
  const auto found = node_.requests.find(event.request);
  if (found == node_.requests.end()) return;
  const Request request = found->second;
  // Who leaves before the deadline has nothing to complain of.
  const bool is_late = now_ > request.deadline;
  if (event.ending != Ending::kCancelled || is_late) {
    Count(request, event.ending == Ending::kAnswered && !is_late);
  }
  Instance& instance = node_.instances.at(request.instance);
  if (instance.waiting.count(request.turn) > 0) {
    // A tenant that is left with nobody to run for is noticed by Advance.
    Unqueue(request);
    node_.requests.erase(request.request);
    return;
  }
  if (!request.is_lost && event.ending == Ending::kAnswered) LearnRunTime(instance);
  TakeBack(request.request);
}

void Scheduler::TakeBack(RequestId id) {
  const auto found = node_.requests.find(id);
  if (found == node_.requests.end()) return;
  const Request request = found->second;
  node_.requests.erase(found);
  if (request.is_lost) return;
  Instance& instance = node_.instances.at(request.instance);
  instance.run_since.reset();
  instance.in_flight.erase(id);
  Gpu& gpu = node_.gpus.at(instance.gpu);
  if (gpu.loading == instance.id) gpu.loading = {};
  if (instance.in_flight.empty()) EmitRevoke(instance);
}

void Scheduler::Enqueue(const Request& request) {
  node_.requests[request.request] = request;
  Instance& instance = node_.instances.at(request.instance);
  instance.waiting.emplace(request.turn, request.request);
  if (!request.is_implicit) {
    ++waiting_;
    ++node_.functions.at(instance.function).waiting;
  }
  UpdateQueue(instance);
}

void Scheduler::Unqueue(const Request& request) {
  Instance& instance = node_.instances.at(request.instance);
  instance.waiting.erase(request.turn);
  if (!request.is_implicit) {
    --waiting_;
    --node_.functions.at(instance.function).waiting;
  }
  UpdateQueue(instance);
}

void Scheduler::RefuseWaiting(RequestId id, Refusal reason) {
  const Request request = node_.requests.at(id);
  Count(request, false);
  Unqueue(request);
  node_.requests.erase(id);
  actions_.emplace_back(Refuse{id, reason});
}

void Scheduler::RefuseAllWaiting(Instance& leader, Refusal reason) {
  while (!leader.waiting.empty()) RefuseWaiting(leader.waiting.begin()->second, reason);
}

void Scheduler::UpdateQueue(Instance& leader) {
  const bool waits = leader.phase == Instance::Phase::kIdle && !leader.waiting.empty();
  const bool is_cold = IsCold(leader);
  if (waits && is_cold) cold_.insert(leader.id);
  const std::optional<Turn> turn =
      waits && !is_cold ? std::optional(leader.waiting.begin()->first) : std::nullopt;
  if (turn == leader.queued_as) return;
  if (leader.queued_as) {
    policies_.queue->Remove(leader, node_, now_);
    --queued_;
  }
  if (!leader.queued_as) leader.wait = {.since = now_};
  leader.queued_as = turn;
  if (!turn) return;
  policies_.queue->Add(leader, node_, now_);
  ++queued_;
}

void Scheduler::UpdateTurn(const Instance& instance) {
  if (instance.queued_as) policies_.queue->Update(instance, node_);
}

void Scheduler::UpdateTurns(const Function& function) {
  for (const InstanceId id : function.instances) UpdateTurn(node_.instances.at(id));
}

void Scheduler::TakeFromSibling(Instance& leader) {
  const auto is_for_any = [this](const auto& entry) {
    return node_.requests.at(entry.second).is_for_any;
  };
  Instance* busiest = nullptr;
  for (const InstanceId id : node_.FunctionOf(leader).instances) {
    Instance& sibling = node_.instances.at(id);
    if (std::none_of(sibling.waiting.begin(), sibling.waiting.end(), is_for_any)) continue;
    if (sibling.waiting.size() > (busiest ? busiest->waiting.size() : 0)) busiest = &sibling;
  }
  if (!busiest) return;
  const auto found = std::find_if(busiest->waiting.begin(), busiest->waiting.end(), is_for_any);
  Request request = node_.requests.at(found->second);
  Unqueue(request);
  request.instance = leader.id;
  Enqueue(request);
}

void Scheduler::Count(const Request& request, bool in_time) {
  if (request.is_implicit) return;
  Function& function = node_.functions.at(node_.instances.at(request.instance).function);
  ++function.finished;
  if (in_time) ++function.in_time;
  function.recent.Add(in_time, now_);
  if (function.recent.finished() == 1) {
    outcome_ends_.emplace(*function.recent.next_end(), function.id);
  }
  policies_.queue->OnOutcome(function, in_time, now_);
  UpdateTurns(function);
}

void Scheduler::ForgetOutcomes() {
  while (!outcome_ends_.empty() && outcome_ends_.begin()->first <= now_) {
    Function& function = node_.functions.at(outcome_ends_.begin()->second);
    outcome_ends_.erase(outcome_ends_.begin());
    function.recent.Forget(now_);
    const std::optional<TimePoint> next = function.recent.next_end();
    if (next) outcome_ends_.emplace(*next, function.id);
    policies_.queue->OnOutcome(function, std::nullopt, now_);
    UpdateTurns(function);
  }
}

void Scheduler::LearnRunTime(const Instance& leader) {
  if (!leader.run_since) return;
  Function& function = node_.functions.at(leader.function);
  RecentMedian& time = function.run_times.of(leader.image_source);
  const std::optional<Duration> before = time.value();
  time.Add(now_ - *leader.run_since);
  if (time.value() == before) return;
  for (const InstanceId id : function.instances) {
    ForEachMember(node_.instances.at(id), [this](Instance& member) { Rank(member); });
  }
  UpdateTurns(function);
}

bool Scheduler::IsTooLarge(Instance& leader) {
  const Bytes largest = LargestCapacity();
  bool is_too_large = false;
  ForEachMember(leader, [&](const Instance& member) {
    is_too_large = is_too_large || member.image_bytes > largest;
  });
  return largest > 0 && is_too_large;
}

bool Scheduler::IsTooLate(const Instance& leader) const {
  const Request& request = node_.FirstOf(leader);
  if (request.is_implicit || request.deadline == TimePoint::max()) return false;
  // A run that takes longer than there is time at all is not late by waiting: one that is served at
  // once shows whether it still takes so long.
  const Duration run = std::min(node_.ExpectedRun(leader), request.deadline - request.turn.arrival);
  return now_ + run > request.deadline;
}

bool Scheduler::StepAside(Instance& leader) {
  if (options_.too_late == TooLate::kServe || !IsTooLate(leader)) return false;
  Request request = node_.FirstOf(leader);
  if (options_.too_late == TooLate::kRefuse) {
    RefuseWaiting(request.request, Refusal::kTooLate);
    return true;
  }
  if (std::exchange(request.turn.is_late, true)) return false;
  const Wait wait = leader.wait;
  Unqueue(node_.requests.at(request.request));
  Enqueue(request);
  leader.wait = wait;
  return true;
}

}  // namespace torpor::scheduler
