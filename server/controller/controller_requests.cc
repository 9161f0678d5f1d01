#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/controller/controller.h"

// Requests of the router, and the node as a whole.
namespace torpor::server {
namespace {

constexpr Duration kConfirmPatience = std::chrono::seconds(1);

// For a request that had a GPU.
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

}  // namespace

void Controller::Acquire(RequestId request, const RequestBroker::Demand& demand,
                         RequestBroker::OnGrant on_grant, RequestBroker::OnLost on_lost) {
  Instance* const instance = InstanceOf(demand.function);
  if (!instance) {
    return on_grant(absl::NotFoundError(absl::StrCat("no function ", demand.function)));
  }
  ++instance->requests;
  if (is_draining_) {
    ++instance->errors;
    return on_grant(absl::UnavailableError("the node is shutting down"));
  }
  Request& queued = requests_[request];
  queued.instance = instance->id;
  queued.arrival = loop_.Now();
  queued.give_up = demand.give_up;
  queued.on_grant = std::move(on_grant);
  queued.on_lost = std::move(on_lost);
  queued.story = {.id = demand.id,
                  .function = demand.function,
                  .deadline = instance->config.deadline,
                  .arrival = queued.arrival,
                  .waiting_before = scheduler_.waiting(),
                  .standing = scheduler_.StandingOf(FunctionOf(*instance))};
  if (demand.give_up != TimePoint::max()) {
    loop_.RunAt(demand.give_up, [this, request] {
      const auto found = requests_.find(request);
      if (found == requests_.end() || found->second.state != Request::State::kQueued) return;
      FailRequest(request, absl::DeadlineExceededError(
                               IsAnyReady() ? "no GPU became free in time"
                                            : "no GPU serves; torpord's log says why"));
    });
  }
  Feed(scheduler::RequestArrived{.request = request, .instance = instance->id});
}

void Controller::Release(RequestId request, scheduler::Ending ending) {
  const auto found = requests_.find(request);
  if (found == requests_.end()) return;
  if (found->second.state != Request::State::kRunning) {
    return FailRequest(request, absl::CancelledError("released before it was granted"));
  }
  FinishRequest(request, ending, WhyNotAnswered(ending));
}

void Controller::ConfirmLease(RequestId request, const std::function<void()>& done) {
  const auto found = requests_.find(request);
  if (found == requests_.end()) return done();
  const std::optional<Lease>& lease = instances_.at(found->second.instance).lease;
  if (!lease || lease->requests.count(request) == 0) return done();
  // Either they answer, or their death is noticed first; one that hangs is not waited for.
  const auto is_done = std::make_shared<bool>(false);
  const auto finish = [is_done, done] {
    if (!std::exchange(*is_done, true)) done();
  };
  v1::DaemonMessage message;
  message.mutable_ping();
  const std::set<GpuIndex> gpus(lease->gpus.begin(), lease->gpus.end());
  RunOn(gpus, message, [finish](const absl::Status&) { finish(); });
  loop_.RunAt(loop_.Now() + kConfirmPatience, finish);
}

void Controller::FlushGrants(Instance& instance) {
  if (!instance.lease) return;
  const bool is_taken =
      std::all_of(instance.lease->members.begin(), instance.lease->members.end(),
                  [](const auto& member) { return member.second >= MemberState::kAcked; });
  if (!is_taken) return;
  const std::set<RequestId> requests = instance.lease->requests;
  for (const RequestId id : requests) {
    const auto found = requests_.find(id);
    if (found == requests_.end() || found->second.state == Request::State::kRunning) continue;
    Request& request = found->second;
    request.state = Request::State::kRunning;
    const TimePoint decided =
        request.story.joined.value_or(std::max(request.arrival, instance.placement.since));
    request.story.gpu = instance.lease->gpus.front();
    request.story.placement = instance.placement;
    request.story.decided = decided;
    request.story.granted = loop_.Now();
    NoteDelay(id, request);
    const Grant grant = {.request = id,
                         .lease = instance.lease->id,
                         .gpu = instance.lease->gpus.front(),
                         .source = instance.lease->source,
                         .queue = decided - request.arrival,
                         .swap = loop_.Now() - decided};
    request.on_grant(grant);
  }
}

void Controller::FailRequest(RequestId request, const absl::Status& status) {
  const auto found = requests_.find(request);
  if (found == requests_.end()) return;
  ++instances_.at(found->second.instance).errors;
  const RequestBroker::OnGrant on_grant = std::move(found->second.on_grant);
  const auto ending =
      absl::IsCancelled(status) ? scheduler::Ending::kCancelled : scheduler::Ending::kFailed;
  FinishRequest(request, ending, std::string(status.message()));
  on_grant(status);
}

void Controller::FinishRequest(RequestId request, scheduler::Ending ending,
                               const std::string& why) {
  const auto found = requests_.find(request);
  if (!found->second.story.decided) NoteDelay(request, found->second);
  Request finished = std::move(found->second);
  requests_.erase(found);
  finished.story.ended = finished.story.as_of = loop_.Now();
  finished.story.ending = ending;
  finished.story.why = why;
  history_.Add(std::move(finished.story));
  std::optional<Lease>& lease = instances_.at(finished.instance).lease;
  if (lease) lease->requests.erase(request);
  // Until now all calls of the request had to fail.
  for (const SessionId id : finished.lost_sessions) {
    if (const SessionPtr session = FindSession(id)) {
      session->link->Send(wire::LeaseRevoke{finished.lost_lease.value});
    }
  }
  Feed(scheduler::RequestGone{request, ending});
  CheckIdle();
}

absl::Status Controller::Change(const std::string& function, std::span<const SettingText> changes) {
  Instance* const instance = InstanceOf(function);
  if (!instance) return absl::NotFoundError(absl::StrCat("there is no function ", function));
  TORPOR_RETURN_IF_ERROR(ChangeFunction(instance->config, changes));
  FeedFunction(*instance);
  telemetry_.OnObjective(function, instance->config.deadline, instance->config.percentile);
  return absl::OkStatus();
}

void Controller::CheckIdle() {
  if (!is_draining_ || !requests_.empty() || !when_idle_) return;
  std::exchange(when_idle_, nullptr)();
}

void Controller::Drain(TaskLoop::Task when_idle) {
  is_draining_ = true;
  when_idle_ = std::move(when_idle);
  CheckIdle();
}

void Controller::Shutdown() {
  if (std::exchange(is_shut_down_, true)) return;
  is_draining_ = true;
  const auto requests = requests_;
  for (const auto& [id, request] : requests) {
    if (request.state == Request::State::kRunning) continue;
    FailRequest(id, absl::UnavailableError("the node is shutting down"));
  }
  for (auto& [gpu, executor] : executors_) {
    if (!executor.is_attached()) continue;
    v1::DaemonMessage message;
    message.mutable_shutdown();
    executor.link()->Send(message);
  }
  const auto sessions = sessions_;
  for (const auto& [id, session] : sessions) session->link->Close("torpord is shutting down");
  AnswerHints();
}

bool Controller::IsReady() const { return !is_draining_ && IsAnyReady(); }

bool Controller::IsAnyReady() const {
  return std::any_of(executors_.begin(), executors_.end(), [](const auto& executor) {
    return executor.second.state() == Executor::State::kReady;
  });
}

}  // namespace torpor::server
