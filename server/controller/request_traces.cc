#include "server/controller/request_traces.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace torpor::server {

void RequestTraces::Begin(RequestId request, const RequestBroker::Demand& demand, TimePoint arrival,
                          const RegisteredFunction& function) {
  live_[request] = {.function = &function,
                    .instance = {},
                    .trace = {.id = demand.id,
                              .function = demand.function,
                              .deadline = function.config.deadline,
                              .arrival = arrival,
                              .waiting_before = scheduler_.waiting(),
                              .standing = scheduler_.StandingOf(function.id)}};
}

void RequestTraces::Join(RequestId request) { live_.at(request).trace.joined = loop_.Now(); }

TimePoint RequestTraces::Grant(RequestId request, const FunctionInstance& instance) {
  Live& live = live_.at(request);
  live.instance = instance.id;
  RequestTrace& trace = live.trace;
  if (live.function->has_several_instances()) trace.instance = instance.name;
  const TimePoint decided =
      trace.joined.value_or(std::max(trace.arrival, instance.placement.since));
  trace.gpu = instance.lease->gpus.front();
  trace.placement = instance.placement;
  trace.decided = decided;
  trace.granted = loop_.Now();
  NoteDelay(request, live);
  return decided;
}

void RequestTraces::Restart(RequestId request) {
  Live& live = live_.at(request);
  RequestTrace& trace = live.trace;
  trace.instance.clear();
  trace.gpu.reset();
  trace.placement = {};
  trace.joined.reset();
  trace.decided.reset();
  trace.granted.reset();
  live.instance = {};
}

InstanceId RequestTraces::InstanceOf(RequestId request, const Live& live) const {
  if (live.instance) return live.instance;
  const auto known = scheduler_.node().requests.find(request);
  return known == scheduler_.node().requests.end() ? live.function->instances.front()
                                                   : known->second.instance;
}

void RequestTraces::End(RequestId request, scheduler::Ending ending, const std::string& why) {
  const auto found = live_.find(request);
  if (!found->second.trace.decided) NoteDelay(request, found->second);
  RequestTrace trace = std::move(found->second.trace);
  live_.erase(found);
  trace.ended = trace.as_of = loop_.Now();
  trace.ending = ending;
  trace.why = why;
  finished_.Add(std::move(trace));
}

Duration RequestTraces::WaitForOwnLease(const RequestTrace& trace,
                                        const scheduler::Instance& placed,
                                        const scheduler::Wait& wait, TimePoint until) {
  const bool had_no_turn = !trace.decided && !placed.queued_as;
  if (trace.joined || had_no_turn) return until - trace.arrival;
  return std::clamp(wait.since - trace.arrival, Duration::zero(), until - trace.arrival);
}

void RequestTraces::NoteDelay(RequestId request, Live& live) const {
  const scheduler::NodeState& node = scheduler_.node();
  const scheduler::Instance& placed = node.instances.at(InstanceOf(request, live));
  const InstancePlacement& placement = instances_.At(placed.id).placement;
  RequestTrace& trace = live.trace;
  const bool is_placed = placed.tenancy.phase == scheduler::Phase::kPlacing &&
                         !placed.waiting.empty() && placed.waiting.begin()->second == request;
  if (!trace.decided && is_placed) {
    trace.decided = std::max(trace.arrival, placement.since);
  }
  const scheduler::Wait& wait = trace.decided ? placement.wait : placed.wait;
  const TimePoint until = trace.decided.value_or(loop_.Now());
  Delay& delay = trace.delay;
  delay.own_lease = WaitForOwnLease(trace, placed, wait, until);
  const Duration queued = until - trace.arrival - delay.own_lease;
  delay.by_choice = std::min(queued, wait.by_choice_until(loop_.Now()));
  delay.no_gpu = queued - delay.by_choice;
  if (delay.by_choice > Duration::zero()) delay.awaited = wait.awaited;
  delay.has_revoked = wait.has_revoked && queued > Duration::zero();
  const auto known = node.requests.find(request);
  if (known != node.requests.end()) delay.is_late = known->second.turn.is_late;
  delay.is_beyond_rescue |= scheduler_.IsBeyondRescue(placed.function);
}

RequestTrace RequestTraces::WithOthers(RequestTrace trace) const {
  const TimePoint until = trace.decided.value_or(trace.as_of);
  const auto add = [&](const RequestTrace& other) {
    const bool was_first =
        other.decided && *other.decided > trace.arrival && *other.decided <= until;
    if (!was_first || other.id == trace.id) return;
    ++(other.arrival <= trace.arrival ? trace.delay.earlier
                                      : trace.delay.overtakers)[other.function];
  };
  for (const auto& [id, live] : live_) add(live.trace);
  for (const RequestTrace& other : finished_.traces()) add(other);
  return trace;
}

absl::StatusOr<RequestTrace> RequestTraces::Explain(const std::string& caller_id) const {
  // From the newest: requests count up.
  for (auto found = live_.rbegin(); found != live_.rend(); ++found) {
    if (found->second.trace.id != caller_id) continue;
    Live live = found->second;
    if (!live.trace.decided) NoteDelay(found->first, live);
    live.trace.as_of = loop_.Now();
    return WithOthers(std::move(live.trace));
  }
  if (const RequestTrace* const trace = finished_.Find(caller_id)) return WithOthers(*trace);
  return absl::NotFoundError(
      absl::StrCat("no request ", caller_id, " runs, waits, or is among the last ones"));
}

}  // namespace torpor::server
