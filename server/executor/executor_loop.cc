#include "server/executor/executor_loop.h"

#include <spdlog/spdlog.h>
#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "base/thread_name.h"
#include "server/executor/gpu/cuda_status.h"

namespace torpor::executor {
namespace {

// Enough workers that a slowly ending session does not delay the swaps of other sessions.
constexpr int kWorkers = 4;

// Interval at which the driver is asked, while a session is active, whether the context is intact:
// a client that only polls the completion page would otherwise never learn of a loss.
constexpr Duration kWatchInterval = std::chrono::milliseconds(5);

// The id of operations that torpord has not asked for; torpord counts from 1.
constexpr std::uint64_t kOwnOperation = 0;

void SetMoved(v1::MovedBytes& message, const memory::MovedBytes& moved) {
  message.set_uploaded(moved.uploaded);
  message.set_changed(moved.changed);
  message.set_scratch(moved.scratch);
}

template <typename... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <typename... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

}  // namespace

ExecutorLoop::ExecutorLoop(const OperationEnvironment& environment,
                           const std::vector<IdleTask*>& idle_tasks, DaemonUplink& uplink,
                           const Clock& clock)
    : environment_(environment), uplink_(uplink), clock_(clock) {
  for (IdleTask* const task : idle_tasks) idle_.push_back({task});
  for (int i = 0; i < kWorkers; ++i) workers_.emplace_back([this] { DoWork(); });
}

ExecutorLoop::~ExecutorLoop() {
  work_.Close();
  mailbox_.Close();
  for (std::thread& worker : workers_) worker.join();
  const CudaDriver& driver = environment_.session.device.driver();
  if (watch_event_ != nullptr) driver.EventDestroy(watch_event_);
  if (watch_stream_ != nullptr) driver.StreamDestroy(watch_stream_);
}

void ExecutorLoop::OnContextLost(SessionId session, const cuda_api::CallStatus& error) {
  Post(ContextLost{session, error});
}

void ExecutorLoop::OnArrival(SessionId session, const ArrivedBytes& bytes, Duration duration) {
  Post(LoopArrival{session, bytes, duration});
}

void ExecutorLoop::DoWork() {
  NameThread("worker");
  const Device& device = environment_.session.device;
  absl::Status ready = device.MakeCurrent();
  absl::StatusOr<CUstream> stream =
      ready.ok() ? device.CreateStream() : absl::StatusOr<CUstream>(ready);
  while (const std::optional<Work> work = work_.Receive()) {
    Post(Do(*work, stream));
    // For an executor that is never idle.
    if (ready.ok()) device.discarded().DestroyOverdue();
  }
  if (stream.ok()) device.driver().StreamDestroy(*stream);
}

LoopMessage ExecutorLoop::Do(const Work& work, const absl::StatusOr<CUstream>& stream) {
  if (const auto* const step = std::get_if<IdleStep>(&work)) {
    if (!stream.ok()) return IdleStepDone{step->task, stream.status()};
    return IdleStepDone{step->task, idle_[step->task].task->Step(*stream, is_wanted_)};
  }
  const auto& operation = std::get<v1::DaemonMessage>(work);
  if (stream.ok()) {
    return RunOperation(environment_, operation, *stream,
                        [this](const OperationOutcome& outcome) { Post(EarlyAnswer{outcome}); });
  }
  OperationOutcome result;
  result.operation_id = operation.operation_id();
  result.session = SessionOf(operation);
  result.status = stream.status();
  return result;
}

ExitStatus ExecutorLoop::Run() {
  if (const absl::Status ready = OpenWatch(); !ready.ok()) {
    spdlog::error("cannot watch the CUDA context: {}", ready.ToString());
    return ExitStatus::kFailure;
  }
  busy_until_ = clock_.Now();
  while (true) {
    std::optional<LoopMessage> message = AwaitMessage();
    const std::optional<ExitStatus> end = message ? Handle(*std::move(message)) : OnSilence();
    if (end) return *end;
  }
}

absl::Status ExecutorLoop::OpenWatch() {
  const Device& device = environment_.session.device;
  TORPOR_ASSIGN_OR_RETURN(watch_stream_, device.CreateStream());
  return device.Status(device.driver().EventCreate(&watch_event_, CU_EVENT_DISABLE_TIMING),
                       "cuEventCreate");
}

std::optional<LoopMessage> ExecutorLoop::AwaitMessage() {
  if (environment_.registry.any_active()) {
    busy_until_ = clock_.Now();
    return mailbox_.ReceiveUntil(busy_until_ + kWatchInterval);
  }
  TimePoint due = TimePoint::max();
  for (const IdleSlot& slot : idle_) due = std::min(due, DueTime(slot));
  if (running_ > 0 || due == TimePoint::max()) return mailbox_.Receive();
  return mailbox_.ReceiveUntil(due);
}

TimePoint ExecutorLoop::DueTime(const IdleSlot& slot) const {
  const TimePoint quiet = busy_until_ + slot.task->quiet_time();
  if (slot.may_gain) return quiet;
  const std::optional<Duration> interval = slot.task->look_again_after();
  return interval ? std::max(quiet, slot.looked_at + *interval) : TimePoint::max();
}

std::optional<ExitStatus> ExecutorLoop::OnSilence() {
  if (environment_.registry.any_active()) return Watch();
  // If a lease has just ended, the silence is the watch's, and the operation that ends the lease
  // still runs.
  const TimePoint now = clock_.Now();
  if (running_ > 0) return std::nullopt;
  const auto due =
      std::ranges::find_if(idle_, [&](const IdleSlot& slot) { return now >= DueTime(slot); });
  if (due == idle_.end()) return std::nullopt;
  is_in_idle_step_ = true;
  ++running_;
  TORPOR_CHECK(work_.Send(IdleStep{static_cast<std::size_t>(due - idle_.begin())}));
  return std::nullopt;
}

std::optional<ExitStatus> ExecutorLoop::Handle(LoopMessage message) {
  return std::visit(Overloaded{[this](v1::DaemonMessage& operation) -> std::optional<ExitStatus> {
                                 // torpord closes all sessions after a shutdown: the end of the
                                 // process does, too.
                                 if (shutdown_operation_ && !operation.has_ping())
                                   return std::nullopt;
                                 return OnOperation(std::move(operation));
                               },
                               [this](OperationOutcome& result) { return OnResult(result); },
                               [this](EarlyAnswer& answer) { return OnEarlyAnswer(answer); },
                               [this](ContextLost& lost) { return OnLost(lost); },
                               [this](LoopArrival& arrival) { return OnArrived(arrival); },
                               [this](IdleStepDone& step) { return OnIdleStepDone(step); },
                               [this](DaemonGone& gone) { return OnGone(gone); },
                               [this](DaemonBack&) { return OnBack(); }},
                    message);
}

std::optional<ExitStatus> ExecutorLoop::OnOperation(v1::DaemonMessage operation) {
  if (daemon_ == Daemon::kAwaited) daemon_ = Daemon::kServed;
  if (operation.has_shutdown()) {
    shutdown_operation_ = operation.operation_id();
    return Settle();
  }
  if (operation.has_outlive()) Outlive(operation);
  if (operation.has_ping() || operation.has_outlive()) {
    OperationOutcome done;
    done.operation_id = operation.operation_id();
    Answer(done);
    return std::nullopt;
  }
  if (is_in_idle_step_) {
    is_wanted_ = true;
    held_.push_back(std::move(operation));
    return std::nullopt;
  }
  for (IdleSlot& slot : idle_) slot.may_gain = true;
  busy_until_ = clock_.Now();
  if (GoesAtOnce(operation)) {
    Answer(RunOperation(environment_, operation, nullptr, nullptr));
    return std::nullopt;
  }
  Lane& lane = lanes_[SessionOf(operation)];
  if (lane.busy) {
    lane.waiting.push_back(std::move(operation));
  } else {
    Dispatch(lane, std::move(operation));
  }
  return std::nullopt;
}

void ExecutorLoop::Dispatch(Lane& lane, v1::DaemonMessage operation) {
  lane.busy = true;
  ++running_;
  TORPOR_CHECK(work_.Send(std::move(operation)));
}

bool ExecutorLoop::GoesAtOnce(const v1::DaemonMessage& operation) const {
  if (!operation.has_begin_lease()) return false;
  const auto lane = lanes_.find(SessionOf(operation));
  return lane == lanes_.end() || (lane->second.is_answered && lane->second.waiting.empty());
}

std::optional<ExitStatus> ExecutorLoop::OnEarlyAnswer(const EarlyAnswer& answer) {
  lanes_.at(answer.outcome.session).is_answered = true;
  Answer(answer.outcome);
  return std::nullopt;
}

std::optional<ExitStatus> ExecutorLoop::OnResult(const OperationOutcome& result) {
  --running_;
  busy_until_ = clock_.Now();
  const auto lane = lanes_.find(result.session);
  lane->second.busy = lane->second.is_answered = false;
  if (lane->second.waiting.empty()) {
    lanes_.erase(lane);
  } else {
    v1::DaemonMessage next = std::move(lane->second.waiting.front());
    lane->second.waiting.pop_front();
    Dispatch(lane->second, std::move(next));
  }
  if (!result.is_answered) Answer(result);
  const bool is_kept = daemon_ == Daemon::kLeft && result.operation_id == kOwnOperation;
  if (is_kept && !result.status.ok()) {
    spdlog::error("session {} cannot be let go of: exiting", result.session.value);
    return ExitStatus::kDaemonLost;
  }
  const CUresult error = ResultOf(result.status);
  const bool is_too_late = result.is_answered && !result.status.ok();
  if (IsSticky(error) || is_too_late) {
    const CUresult told = error == CUDA_SUCCESS ? CUDA_ERROR_UNKNOWN : error;
    return OnLost(
        {result.session, cuda_api::CallFailed(told, std::string(result.status.message()))});
  }
  if (MayBeSticky(error)) {
    if (const std::optional<ExitStatus> lost = Watch(result.session)) return lost;
  }
  return Settle();
}

void ExecutorLoop::Answer(const OperationOutcome& result) {
  // Aborted: torpord asks again.
  if (!result.status.ok() && !absl::IsAborted(result.status)) {
    spdlog::warn("operation {} on session {}: {}", result.operation_id, result.session.value,
                 result.status.ToString());
  }
  v1::ExecutorMessage message;
  v1::ExecutorMessage::OperationDone& done = *message.mutable_operation_done();
  done.set_operation_id(result.operation_id);
  done.set_code(static_cast<int>(result.status.code()));
  done.set_message(std::string(result.status.message()));
  SetMoved(*done.mutable_to_host(), result.to_host);
  done.set_has_more(result.has_more);
  SetMoved(*done.mutable_from_peer(), result.from_peer);
  v1::MemoryUse& memory = *done.mutable_memory();
  memory.set_session_id(result.session.value);
  memory.set_session_used_bytes(result.memory.used);
  memory.set_session_held_bytes(result.memory.held);
  SetFree(memory);
  done.set_duration_ns(static_cast<std::uint64_t>(result.duration.count()));
  v1::Learned& learned = *done.mutable_learned();
  learned.mutable_touched()->Assign(result.findings.touched.begin(), result.findings.touched.end());
  learned.mutable_uploaded()->Assign(result.findings.uploaded.begin(),
                                     result.findings.uploaded.end());
  learned.mutable_address_holders()->Assign(result.findings.address_holders.begin(),
                                            result.findings.address_holders.end());
  learned.set_searched_whole_image(result.findings.searched_whole_image);
  learned.set_too_many_holders(result.findings.too_many_holders);
  uplink_.Send(message);
}

void ExecutorLoop::SetFree(v1::MemoryUse& memory) {
  // Set here for each answer, so that the last answer is correct whatever the order of the workers.
  free_told_ = environment_.session.gpu_memory.free_bytes();
  fragmented_told_ = environment_.session.gpu_memory.fragmented_bytes();
  memory.set_free_bytes(free_told_);
  memory.set_fragmented_bytes(fragmented_told_);
}

void ExecutorLoop::ReportFree() {
  const Bytes free_before = free_told_;
  const Bytes fragmented_before = fragmented_told_;
  v1::ExecutorMessage message;
  SetFree(*message.mutable_memory_use());
  if (free_told_ != free_before || fragmented_told_ != fragmented_before) uplink_.Send(message);
}

std::optional<ExitStatus> ExecutorLoop::Settle() {
  if (running_ > 0) return std::nullopt;
  if (daemon_ == Daemon::kLeft) {
    daemon_ = Daemon::kAwaited;
    uplink_.RegisterAgain();
    return std::nullopt;
  }
  if (!shutdown_operation_) return std::nullopt;
  OperationOutcome done;
  done.operation_id = *shutdown_operation_;
  Answer(done);
  return ExitStatus::kShutdown;
}

void ExecutorLoop::Outlive(const v1::DaemonMessage& operation) {
  patience_ = std::chrono::milliseconds(operation.outlive().patience_ms());
  if (environment_.pool_owner != nullptr) {
    // Without the owner's memory the executor would still serve, but no other after it.
    const absl::Status told = environment_.pool_owner->Outlive(patience_);
    if (!told.ok()) spdlog::warn("torpord's end ends the pool: {}", told.ToString());
  }
  // Until here the kernel ends the process with its torpord, which did not know of it yet.
  prctl(PR_SET_PDEATHSIG, 0);
}

std::optional<ExitStatus> ExecutorLoop::OnGone(const DaemonGone& gone) {
  if (gone.is_final || patience_ == Duration::zero() || shutdown_operation_) {
    spdlog::warn("lost the connection to torpord ({}): exiting", gone.reason);
    return ExitStatus::kDaemonLost;
  }
  spdlog::warn("lost the connection to torpord ({}): waiting {:.0f} s for the next", gone.reason,
               ToSeconds(patience_));
  daemon_ = Daemon::kGone;
  // Operations that have not begun had their only reader in the torpord that is gone.
  held_.clear();
  for (auto& [session, lane] : lanes_) lane.waiting.clear();
  uplink_.AwaitNext(patience_);
  return std::nullopt;
}

// The next torpord goes on with the sessions from their images in host memory: nothing may work on
// those any more.
std::optional<ExitStatus> ExecutorLoop::OnBack() {
  daemon_ = Daemon::kLeft;
  for (const Session* const session : environment_.registry.All()) {
    v1::DaemonMessage close;
    close.mutable_close_session()->set_session_id(session->identity().id.value);
    OnOperation(std::move(close));
  }
  return Settle();
}

std::optional<ExitStatus> ExecutorLoop::OnLost(const ContextLost& lost) {
  const SessionId session =
      environment_.registry.Blame(lost.session, static_cast<std::uint32_t>(lost.error.code));
  spdlog::error("session {} has cost the CUDA context: {}", session.value, lost.error.message);
  v1::ExecutorMessage message;
  v1::ExecutorMessage::ContextLost& report = *message.mutable_context_lost();
  report.set_session_id(session.value);
  report.set_cuda_error(lost.error.code);
  // If no call has waited for the kernel, the program learns of the failure only here.
  std::string text = lost.error.message;
  const std::string said = environment_.session.output.TakeSaid();
  if (!said.empty()) text += "\n" + said;
  report.set_message(text);
  uplink_.Send(message);
  return ExitStatus::kContextLost;
}

std::optional<ExitStatus> ExecutorLoop::OnArrived(const LoopArrival& arrival) {
  v1::ExecutorMessage message;
  v1::ExecutorMessage::SwapInComplete& complete = *message.mutable_swap_in_complete();
  complete.set_session_id(arrival.session.value);
  SetMoved(*complete.mutable_to_device(), arrival.bytes.from_host);
  SetMoved(*complete.mutable_from_peer(), arrival.bytes.from_peer);
  complete.set_duration_ns(static_cast<std::uint64_t>(arrival.duration.count()));
  uplink_.Send(message);
  return std::nullopt;
}

std::optional<ExitStatus> ExecutorLoop::OnIdleStepDone(const IdleStepDone& step) {
  --running_;
  is_in_idle_step_ = false;
  is_wanted_ = false;
  IdleSlot& slot = idle_[step.task];
  slot.may_gain = step.has_more.ok() && *step.has_more;
  if (!slot.may_gain) slot.looked_at = clock_.Now();
  ReportFree();
  for (v1::DaemonMessage& operation : std::exchange(held_, {})) OnOperation(std::move(operation));
  if (step.has_more.ok()) return Settle();
  const absl::Status& status = step.has_more.status();
  spdlog::error("{}, while idle: {}", slot.task->name(), status.ToString());
  const CUresult error = ResultOf(status);
  if (!IsSticky(error)) return Settle();
  return OnLost({{}, cuda_api::CallFailed(error, std::string(status.message()))});
}

// A driver may tell a fault only to calls with work, so the stream gets some. Nothing else uses the
// stream: whatever its error, the context is lost.
std::optional<ExitStatus> ExecutorLoop::Watch(SessionId suspect) {
  const CudaDriver& driver = environment_.session.device.driver();
  CUresult result = driver.StreamQuery(watch_stream_);
  if (result == CUDA_SUCCESS) result = driver.EventRecord(watch_event_, watch_stream_);
  if (result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_READY) return std::nullopt;
  const absl::Status status = environment_.session.device.Status(result, "a kernel failed");
  return OnLost({suspect, cuda_api::CallFailed(result, std::string(status.message()))});
}

}  // namespace torpor::executor
