#include "server/controller/requests.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/controller/function_strikes.h"
#include "server/controller/session_saves.h"

namespace torpor::server {
namespace {

constexpr Duration kConfirmPatience = std::chrono::seconds(1);
// Until torpord, too, knows of the end of a lease or an executor.
constexpr Duration kSaveAgain = std::chrono::milliseconds(10);
// Leases that may end untaken before the request fails; only where another instance may do better.
constexpr int kMaxLeasesUntaken = 3;

// The reason for a request that had a GPU.
const char* WhyNotAnswered(scheduler::Ending ending) {
  switch (ending) {
    case scheduler::Ending::kAnswered:
      return "";
    case scheduler::Ending::kFailed:
      return "its function's server gave no answer, or one of its own errors";
    case scheduler::Ending::kCancelled:
      return "its caller went";
    case scheduler::Ending::kLost:
      return "the executor of its GPU died while it ran";
  }
  return "";
}

// Returns a task, for several who may call it, of which the first call alone calls `done`.
TaskLoop::Task Once(const TaskLoop::Task& done) {
  return [is_done = std::make_shared<bool>(false), done] {
    if (!std::exchange(*is_done, true)) done();
  };
}

absl::Status WasRemoved(const RegisteredFunction& function) {
  return absl::NotFoundError(absl::StrCat("function ", function.config.name, " was removed"));
}

}  // namespace

void Requests::Acquire(RequestId request, const RequestBroker::Demand& demand,
                       RequestBroker::OnGrant on_grant, RequestBroker::OnLost on_lost) {
  RegisteredFunction* const function = instances_.FindFunction(demand.function);
  if (!function) {
    return on_grant(absl::NotFoundError(absl::StrCat("no function ", demand.function)));
  }
  FunctionInstance* const ran_on = demand.ran_on.empty() ? nullptr : Find(*function, demand.ran_on);
  if (!ran_on && !demand.ran_on.empty()) {
    return on_grant(absl::NotFoundError(absl::StrCat("no instance ", demand.ran_on)));
  }
  ++function->requests;
  if (is_draining_) {
    ++function->errors;
    return on_grant(absl::UnavailableError("the node is shutting down"));
  }
  // A request that ran goes on: its work is not the function's next.
  if (const auto refusal = WhyRefused(*function, loop_.Now()); refusal && !ran_on) {
    ++function->errors;
    return on_grant(*refusal);
  }
  Request& queued = requests_[request];
  queued.function = function;
  queued.arrival = std::min(demand.arrival.value_or(loop_.Now()), loop_.Now());
  queued.give_up = demand.give_up;
  queued.patience = demand.give_up - loop_.Now();
  queued.on_grant = std::move(on_grant);
  queued.on_lost = std::move(on_lost);
  scheduler::RequestArrived arrived{.request = request, .function = function->id};
  // Not the arrival, which tells of a request that was granted once: limits hold for all others.
  if (demand.arrival) arrived.deadline = queued.arrival + function->config.deadline;
  traces_.Begin(request, demand, queued.arrival, *function);
  if (ran_on) {
    queued.granted = demand.granted.value_or(TimePoint::min());
    return GoOn(request, queued, *ran_on);
  }
  FailInTime(request, queued);
  events_.Feed(arrived);
}

FunctionInstance* Requests::Find(const RegisteredFunction& function, const std::string& name) {
  for (const InstanceId id : function.instances) {
    if (instances_.At(id).name == name) return &instances_.At(id);
  }
  return nullptr;
}

void Requests::GoOn(RequestId id, Request& request, const FunctionInstance& instance) {
  request.instance = instance.id;
  request.was_granted = true;
  // Should it wait for another instance, then as long as a new one.
  request.patience = request.give_up - request.arrival;
  const std::vector<SessionPtr> sessions = sessions_.Of(instance);
  const bool is_done_again =
      instance.replays() && std::any_of(sessions.begin(), sessions.end(), [](const auto& session) {
        return session->state == ClientSession::State::kAway || session->is_able();
      });
  if (is_done_again) return Requeue(id);
  // The function may answer without a GPU.
  request.is_orphan = true;
  request.state = Request::State::kRunning;
}

void Requests::FailInTime(RequestId id, const Request& request) {
  if (request.give_up == TimePoint::max()) return;
  loop_.RunAt(request.give_up, [this, id] {
    const auto found = requests_.find(id);
    if (found == requests_.end() || found->second.state != Request::State::kQueued) return;
    // A caller with a grant waits for the answer, not for a GPU. Others may have asked again.
    if (found->second.was_granted || loop_.Now() < found->second.give_up) return;
    Fail(id, absl::DeadlineExceededError(executors_.IsAnyReady()
                                             ? "no GPU became free in time"
                                             : "no GPU serves; torpord's log says why"));
  });
}

void Requests::Release(RequestId request, scheduler::Ending ending) {
  const auto found = requests_.find(request);
  if (found == requests_.end()) return;
  if (!found->second.was_granted) {
    return Fail(request, absl::CancelledError("released before it was granted"));
  }
  if (ending == scheduler::Ending::kAnswered) {
    health_.OnAnswered(instances_.At(found->second.instance));
  }
  Finish(request, ending, WhyNotAnswered(ending));
}

void Requests::ConfirmLease(RequestId request, const std::function<void()>& done) {
  const auto found = requests_.find(request);
  if (found == requests_.end() || !found->second.instance) return done();
  if (found->second.is_orphan) {
    TellLost(found->second,
             absl::UnavailableError("torpord was started anew while the request ran"));
    return done();
  }
  const std::optional<InstanceLease>& lease = instances_.At(found->second.instance).lease;
  if (!lease || lease->requests.count(request) == 0) {
    // Of a lease that is to be replayed the program may know more than its client library has told.
    const bool waits_again =
        found->second.was_granted && found->second.state == Request::State::kQueued;
    if (!waits_again) return done();
    const TaskLoop::Task finish = Once(done);
    found->second.when_settled.push_back(finish);
    return loop_.RunAt(loop_.Now() + kConfirmPatience, finish);
  }
  // Either the executors answer, or their death is noticed first; a hanging executor is not waited
  // for.
  const TaskLoop::Task finish = Once(done);
  v1::DaemonMessage message;
  message.mutable_ping();
  const std::set<GpuIndex> gpus(lease->gpus.begin(), lease->gpus.end());
  executors_.RunOn(gpus, message, [finish](const absl::Status&) { finish(); });
  loop_.RunAt(loop_.Now() + kConfirmPatience, finish);
}

void Requests::Save(RequestId id, const std::function<void()>& done) {
  const auto found = requests_.find(id);
  if (found == requests_.end() || !found->second.was_granted || found->second.is_lost) {
    return done();
  }
  if (found->second.is_orphan) {
    TellLost(found->second,
             absl::UnavailableError("torpord was started anew while the request ran"));
    return done();
  }
  const auto again = [this, id, done] { Save(id, done); };
  // What was lost is done again first.
  if (found->second.state == Request::State::kQueued) {
    found->second.when_settled.push_back(again);
    return;
  }
  const FunctionInstance& instance = instances_.At(found->second.instance);
  saves_.Save(instance, found->second.granted, [=, this](const absl::Status& saved) {
    if (absl::IsAborted(saved)) return loop_.RunAt(loop_.Now() + kSaveAgain, again);
    const auto running = requests_.find(id);
    if (!saved.ok() && running != requests_.end()) TellLost(running->second, saved);
    done();
  });
}

void Requests::AskAgain(RequestId request) {
  const auto found = requests_.find(request);
  // The request runs, or waits with its grant for another GPU.
  if (found == requests_.end() || !found->second.was_granted) return;
  Request& asking = found->second;
  // Before the scheduler chooses an instance again.
  health_.OnRefused(instances_.At(asking.instance));
  LeaveLease(request, asking);
  Settle(asking);
  asking.was_granted = false;
  asking.is_orphan = false;
  if (asking.give_up != TimePoint::max()) asking.give_up = loop_.Now() + asking.patience;
  traces_.Restart(request);
  Requeue(request);
}

void Requests::NoteLeased(RequestId request, InstanceId instance) {
  Request& leased = requests_.at(request);
  leased.state = Request::State::kLeased;
  leased.instance = instance;
}

void Requests::RunTaken(FunctionInstance& instance) {
  if (!instance.lease) return;
  const bool is_taken = std::all_of(
      instance.lease->participants.begin(), instance.lease->participants.end(),
      [](const auto& participant) { return participant.second >= ParticipantState::kAcked; });
  if (!is_taken) return;
  const std::set<RequestId> requests = instance.lease->requests;
  for (const RequestId id : requests) {
    const auto found = requests_.find(id);
    if (found == requests_.end() || found->second.state == Request::State::kRunning) continue;
    Request& request = found->second;
    request.state = Request::State::kRunning;
    Settle(request);
    const TimePoint decided = traces_.Grant(id, instance);
    if (std::exchange(request.was_granted, true)) continue;
    request.granted = loop_.Now();
    ++instance.totals.requests;
    const RequestGrant grant = {.request = id,
                                .lease = instance.lease->id,
                                .instance = instance.name,
                                .upstream = instance.upstream,
                                .has_siblings = instances_.HasSibling(instance),
                                .gpu = instance.lease->gpus.front(),
                                .source = instance.lease->source,
                                .queue = decided - request.arrival,
                                .swap = loop_.Now() - decided};
    request.on_grant(grant);
  }
}

void Requests::Fail(RequestId request, const absl::Status& status) {
  const auto found = requests_.find(request);
  if (found == requests_.end()) return;
  // The caller releases the request in the end.
  if (found->second.was_granted) return TellLost(found->second, status);
  ++found->second.function->errors;
  const RequestBroker::OnGrant on_grant = std::move(found->second.on_grant);
  const auto ending =
      absl::IsCancelled(status) ? scheduler::Ending::kCancelled : scheduler::Ending::kFailed;
  Finish(request, ending, std::string(status.message()));
  on_grant(status);
}

void Requests::LeaveLease(RequestId id, Request& request) {
  if (!request.instance) return;
  std::optional<InstanceLease>& lease = instances_.At(request.instance).lease;
  if (lease) lease->requests.erase(id);
  // Until now all calls of the request had to fail.
  for (const SessionId lost : std::exchange(request.lost_sessions, {})) {
    if (const SessionPtr session = sessions_.Find(lost)) {
      session->link->Send(wire::LeaseRevoke{request.lost_lease.value});
    }
  }
}

void Requests::Finish(RequestId request, scheduler::Ending ending, const std::string& why) {
  traces_.End(request, ending, why);
  auto entry = requests_.extract(request);
  LeaveLease(request, entry.mapped());
  Settle(entry.mapped());
  events_.Feed(scheduler::RequestGone{request, ending});
  CheckIdle();
}

void Requests::OnLeaseEnded(const InstanceLease& lease) {
  for (const RequestId request : lease.requests) {
    const auto found = requests_.find(request);
    if (found == requests_.end() || found->second.state == Request::State::kRunning) continue;
    const bool may_move = !found->second.was_granted &&
                          instances_.HasSibling(instances_.At(found->second.instance)) &&
                          ++found->second.leases_untaken < kMaxLeasesUntaken;
    if (may_move) {
      Requeue(request);
    } else {
      Fail(request, absl::UnavailableError("the function's process did not take its lease"));
    }
  }
}

std::vector<RequestId> Requests::OnLeaseLost(const LeaseService::Lost& lost) {
  std::vector<RequestId> waiting;
  for (const RequestId id : lost.lease.requests) {
    const auto found = requests_.find(id);
    if (found == requests_.end()) continue;
    Request& request = found->second;
    if (request.state != Request::State::kRunning) {
      waiting.push_back(id);
      continue;
    }
    // The function has not used the GPU yet, or does its work again; either way it needs another
    // lease, and takes the place of a request until its end.
    if (lost.harmed.empty() || lost.is_replayed) {
      waiting.push_back(id);
      continue;
    }
    request.lost_lease = lost.lease.id;
    request.lost_sessions = lost.harmed;
    // A function that broke its own GPU knows, and answers the request by itself.
    if (lost.is_own_fault) continue;
    TellLost(request, absl::UnavailableError("the executor died while the request ran"));
  }
  return waiting;
}

void Requests::TellLost(Request& request, const absl::Status& why) {
  if (std::exchange(request.is_lost, true)) return;
  ++request.function->errors;
  Settle(request);
  request.on_lost(why);
}

void Requests::Settle(Request& request) {
  for (TaskLoop::Task& told : std::exchange(request.when_settled, {})) loop_.Post(std::move(told));
}

void Requests::OnSessionLost(InstanceId instance, const std::string& why) {
  for (auto& [id, request] : requests_) {
    if (request.instance != instance || !request.was_granted) continue;
    TellLost(request, absl::UnavailableError(why));
  }
}

void Requests::Requeue(RequestId request) {
  const auto found = requests_.find(request);
  if (found == requests_.end()) return;
  Request& queued = found->second;
  queued.state = Request::State::kQueued;
  if (queued.function->is_removed) return Fail(request, WasRemoved(*queued.function));
  if (!queued.was_granted) {
    queued.instance = {};
    queued.is_lost = false;
    FailInTime(request, queued);
  }
  events_.Feed(scheduler::RequestArrived{.request = request,
                                         .instance = queued.instance,
                                         .function = queued.function->id,
                                         .arrival = queued.arrival});
}

void Requests::FailRemoved(const RegisteredFunction& function) {
  FailQueued(function, WasRemoved(function));
}

void Requests::FailQueued(const RegisteredFunction& function, const absl::Status& why) {
  std::vector<RequestId> queued;
  for (const auto& [id, request] : requests_) {
    const bool is_queued = request.state == Request::State::kQueued;
    if (is_queued && request.function == &function) queued.push_back(id);
  }
  for (const RequestId id : queued) Fail(id, why);
}

bool Requests::IsUsing(InstanceId instance) const {
  return std::any_of(requests_.begin(), requests_.end(), [instance](const auto& request) {
    return request.second.instance == instance;
  });
}

void Requests::CheckIdle() {
  if (!is_draining_ || !requests_.empty() || !when_idle_) return;
  std::exchange(when_idle_, nullptr)();
}

void Requests::Drain(TaskLoop::Task when_idle) {
  is_draining_ = true;
  when_idle_ = std::move(when_idle);
  CheckIdle();
}

void Requests::Shutdown() {
  is_draining_ = true;
  std::vector<RequestId> waiting;
  for (const auto& [id, request] : requests_) {
    if (request.state != Request::State::kRunning) waiting.push_back(id);
  }
  for (const RequestId id : waiting) {
    Fail(id, absl::UnavailableError("the node is shutting down"));
  }
}

std::size_t Requests::queued() const {
  return static_cast<std::size_t>(std::count_if(
      requests_.begin(), requests_.end(),
      [](const auto& request) { return request.second.state == Request::State::kQueued; }));
}

}  // namespace torpor::server
