#include "server/controller/model/gpu_executor.h"

#include <spdlog/spdlog.h>

#include <chrono>
#include <utility>

namespace torpor::server {
namespace {

std::string KindOf(const v1::DaemonMessage& operation) {
  const auto* const field =
      v1::DaemonMessage::descriptor()->FindFieldByNumber(operation.kind_case());
  return field == nullptr ? "" : std::string(field->name());
}

double Microseconds(Duration duration) {
  return std::chrono::duration<double, std::micro>(duration).count();
}

}  // namespace

void GpuExecutor::OnStarting(std::uint64_t epoch) {
  state_ = State::kStarting;
  epoch_ = epoch;
  adopted_process_ = 0;
  ++starts_;
}

void GpuExecutor::OnAdopted(std::uint64_t epoch, std::int64_t process) {
  OnStarting(epoch);
  adopted_process_ = process;
}

bool GpuExecutor::Expects(const v1::ExecutorMessage::Register& what) const {
  if (state_ != State::kStarting) return false;
  return adopted_process_ != 0 ? what.pid() == adopted_process_ : what.epoch() == epoch_;
}

void GpuExecutor::OnRegistered(std::shared_ptr<ExecutorChannel> link,
                               const v1::ExecutorMessage::Register& what) {
  state_ = State::kRecovering;
  link_ = std::move(link);
  registration_ = what;
  memory_ = {};
  memory_.free = what.pool_bytes();
}

void GpuExecutor::Start(v1::DaemonMessage operation, TimePoint now, OnDone done) {
  const std::uint64_t id = next_operation_++;
  operation.set_operation_id(id);
  pending_.emplace(id, Pending{now, KindOf(operation), std::move(done)});
  link_->Send(operation);
}

void GpuExecutor::AwaitLoss(TimePoint now, OnDone done) {
  pending_.emplace(next_operation_++, Pending{now, "its end", std::move(done)});
}

void GpuExecutor::OnMemory(const v1::MemoryUse& use) {
  memory_.free = use.free_bytes();
  memory_.fragmented = use.fragmented_bytes();
  const SessionId session{use.session_id()};
  if (use.session_held_bytes() == 0) {
    memory_.sessions.erase(session);
  } else {
    memory_.sessions[session] = {use.session_used_bytes(), use.session_held_bytes()};
  }
}

void GpuExecutor::OnOperationDone(const v1::ExecutorMessage::OperationDone& answer, TimePoint now) {
  if (answer.has_memory()) OnMemory(answer.memory());
  const auto pending = pending_.find(answer.operation_id());
  if (pending == pending_.end()) return;
  const Pending operation = std::move(pending->second);
  pending_.erase(pending);
  OperationResult result;
  result.status = absl::Status(static_cast<absl::StatusCode>(answer.code()), answer.message());
  result.to_host = ToMovedBytes(answer.to_host());
  result.has_more = answer.has_more();
  result.from_peer = ToMovedBytes(answer.from_peer());
  result.duration = Duration(static_cast<Duration::rep>(answer.duration_ns()));
  result.learned = answer.learned();
  spdlog::debug("GPU {}: {} took {:.0f} us, {:.0f} of them in the executor", gpu().value,
                operation.kind, Microseconds(now - operation.since), Microseconds(result.duration));
  operation.done(result);
}

std::map<std::uint64_t, GpuExecutor::OnDone> GpuExecutor::OnLost() {
  state_ = State::kAbsent;
  link_.reset();
  memory_ = {};
  std::map<std::uint64_t, OnDone> unanswered;
  for (auto& [id, pending] : pending_) unanswered.emplace(id, std::move(pending.done));
  pending_.clear();
  return unanswered;
}

TimePoint GpuExecutor::oldest_operation() const {
  return pending_.empty() ? TimePoint::max() : pending_.begin()->second.since;
}

}  // namespace torpor::server
