#include "client_shim/core/commands/command_channel.h"

#include <poll.h>

#include <algorithm>
#include <cstdio>
#include <thread>
#include <utility>

#include "base/try.h"
#include "client_shim/core/call_tracer.h"
#include "client_shim/core/quiet_calls.h"
#include "client_shim/core/transport/open_stream.h"
#include "proto/cuda_api/cudart_commands.h"

namespace torpor::shim {
namespace {

// Limit of output waiting for a slow executor, beyond which calls wait too.
constexpr std::size_t kMaxUnsentBytes = std::size_t{1} << 20;
// A granted executor listens already: only a full backlog can delay the connection.
constexpr std::chrono::seconds kConnectPatience{2};
constexpr std::chrono::milliseconds kLastWordsPoll{1};

// A batch with a piece of at least this size leaves at once; smaller pieces may share a batch.
// Waking the service thread for the batch's deadline would cost more than sending.
constexpr std::uint64_t kPromptBytes = std::uint64_t{256} * 1024;

constexpr std::uint32_t CallId(wire::ProtocolCall call) { return static_cast<std::uint32_t>(call); }

}  // namespace

CommandChannel::CommandChannel(const ChannelOptions& options, const ChannelParts& parts)
    : options_(options), parts_(parts), lease_(options.lease_idle), batch_(options.batch) {
  if (options_.batch.calls == 0) batch_.set_max_calls(rhythm_.calls());
}

cudaError_t CommandChannel::AwaitLease(Lock& lock, bool tells_program) {
  for (;;) {
    TORPOR_TRY(parts_.health.sticky());
    if (lease_.state() == ClientLease::State::kHeld) return cudaSuccess;
    if (lease_.state() == ClientLease::State::kLost) {
      LeaseActions actions;
      const cudaError_t error = lease_.FailCall(tells_program, CallsAreQuiet(), Moment(), actions);
      CarryOut(actions);
      return error;
    }
    CarryOut(lease_.Need());
    const TracedWait wait(TracedWaitFor::kLease);
    lease_changed_.wait(lock);
  }
}

cudaError_t CommandChannel::AwaitRoom(Lock& lock, bool tells_program) {
  for (;;) {
    if (const cudaError_t error = AwaitLease(lock, tells_program); error != cudaSuccess)
      return error;
    if (lease_link_->unsent_bytes() <= kMaxUnsentBytes) return cudaSuccess;
    const TracedWait wait(TracedWaitFor::kRoom);
    room_.wait(lock);
  }
}

cudaError_t CommandChannel::Enqueue(const Command& command) {
  if (command.fields.size() > kMaxCommandFields) return cudaErrorInvalidValue;
  {
    Lock lock(mutex_);
    TORPOR_TRY(AwaitRoom(lock, false));
    batch_.AppendLater(command);
    ++uses_;
    if (command.piece) parts_.ring.Submitted(*command.piece);
    if (command.piece && command.piece->bytes >= kPromptBytes)
      FlushBatch();
    else if (!options_.holds_batches)
      FlushInTime();
  }
  TraceCommand(command.fields.size() + (command.piece ? command.piece->bytes : 0));
  return cudaSuccess;
}

cudaError_t CommandChannel::Call(const Command& command, CallReply& reply) {
  if (command.fields.size() > kMaxCommandFields) return cudaErrorInvalidValue;
  const TracedWait wait(TracedWaitFor::kExecutor);
  ReplyWaiter waiter;
  waiter.reply = &reply;
  waiter.tells_program = !CallsAreQuiet();
  Lock lock(mutex_);
  TORPOR_TRY(AwaitRoom(lock, true));
  const ExecutorLinkPtr link = lease_link_;
  batch_.Append(command.call_id, command.fields);
  const std::uint64_t use = ++uses_;
  link->Expect({PendingReply::Kind::kCall, command.call_id, &waiter});
  FlushBatch();
  while (!waiter.done) {
    if (link->is_being_read())
      waiter.changed.wait(lock);
    else
      Read(lock, link, /*waits=*/true);
  }
  HandOverReading(*link);
  if (waiter.error == cudaSuccess && lease_link_ == link) lease_.NoteAnswer(use);
  lock.unlock();
  TraceCommand(command.fields.size());
  TraceBytes(0, reply.result.size());
  if (!printed_.IsEmpty()) printed_.Print(stdout);
  return waiter.error;
}

void CommandChannel::Flush() {
  const Lock lock(mutex_);
  FlushBatch();
}

cudaError_t CommandChannel::TakeAsyncError() {
  if (CallsAreQuiet()) return cudaSuccess;
  const Lock lock(mutex_);
  // Reading the clock costs more than all else here, and programs ask often.
  if (lease_.state() == ClientLease::State::kLost) {
    LeaseActions actions;
    const cudaError_t loss = lease_.TakeLoss(Moment(), actions);
    CarryOut(actions);
    if (loss != cudaSuccess) return loss;
  }
  return std::exchange(async_error_, cudaSuccess);
}

bool CommandChannel::IsDrained() const {
  const Lock lock(mutex_);
  return lease_.IsDrained();
}

double CommandChannel::RecentShare() const {
  const Lock lock(mutex_);
  return lease_.RecentShare(std::chrono::steady_clock::now());
}

void CommandChannel::CarryOut(const LeaseActions& actions) {
  if (actions.requests) parts_.daemon.Send(wire::LeaseRequest{});
  if (actions.begins_return) BeginReturn();
  if (actions.drops_work) {
    batch_.Clear();
    parts_.slots.CompleteAll();
    parts_.ring.DropSubmitted();
  }
  if (!lease_.HasExecutor()) lease_link_ = nullptr;
  if (actions.returned != 0) parts_.daemon.Send(wire::LeaseReturned{actions.returned});
  if (actions.ends_request && options_.traces_requests) TraceSection(nullptr);
  if (actions.untold != cudaSuccess && async_error_ == cudaSuccess) async_error_ = actions.untold;
  if (actions.wakes) NotifyAll();
}

// At a call boundary, since the mutex is held: enqueued commands go first, replies that threads
// wait for arrive before the drain's.
void CommandChannel::BeginReturn() {
  batch_.Append(CallId(wire::ProtocolCall::kDrain), {});
  lease_link_->Expect({PendingReply::Kind::kDrain, CallId(wire::ProtocolCall::kDrain), nullptr});
  FlushBatch();
}

// Flushes a full batch; leaves others to the timer.
void CommandChannel::FlushInTime() {
  if (batch_.IsFull()) return FlushFullBatch();
  if (timer_is_armed_) return;
  timer_is_armed_ = true;
  parts_.wake();
}

void CommandChannel::FlushFullBatch() {
  if (options_.batch.calls != 0) return FlushBatch();
  const std::uint32_t calls = batch_.count();
  const Time begun = batch_.oldest();
  const Time filled = std::chrono::steady_clock::now();
  FlushBatch();
  rhythm_.Note(calls, filled - begun, std::chrono::steady_clock::now() - filled);
  batch_.set_max_calls(rhythm_.calls());
}

void CommandChannel::FlushBatch() {
  if (batch_.empty()) return;
  const ExecutorLinkPtr link = lease_link_;
  SendBatch(*link);
  Pump(link);
}

void CommandChannel::SendBatch(ExecutorLink& link) {
  std::vector<std::uint8_t> frame = batch_.Take(lease_.id());
  link.Send(frame);
  batch_.Reuse(std::move(frame));
  TraceBatch();
}

void CommandChannel::Pump(const ExecutorLinkPtr& link) {
  link->Write();
  if (link->is_closed())
    BreakLink(link, cudaErrorDevicesUnavailable, link->why_closed());
  else if (link->unsent_bytes() > 0)
    parts_.wake();
}

void CommandChannel::Read(Lock& lock, const ExecutorLinkPtr& link, bool waits) {
  link->Read(lock, waits);
  if (link->unsent_bytes() <= kMaxUnsentBytes) room_.notify_all();
  // An opened window let more go than the socket takes; the next read may wait for the answer to
  // the rest.
  if (link->awaits_service()) parts_.wake();
  wire::Reply reply;
  PendingReply answered;
  while (link->Next(reply, answered)) TakeReply(link, std::move(reply), answered);
  if (link->is_closed()) BreakLink(link, cudaErrorDevicesUnavailable, link->why_closed());
}

void CommandChannel::HandOverReading(ExecutorLink& link) {
  if (link.HandOverReading()) parts_.wake();
}

void CommandChannel::TakeReply(const ExecutorLinkPtr& link, wire::Reply reply,
                               const PendingReply& answered) {
  if (answered.kind == PendingReply::Kind::kOutput) {
    printed_.Add(reply.result);
    if (!reply.message.empty()) parts_.log.Warn(reply.message);
    return;
  }
  if (reply.status != 0 && !reply.message.empty())
    parts_.log.Debug("call " + std::to_string(reply.call_id) + ": " + reply.message);
  NoteAsyncError(reply);
  if (answered.kind == PendingReply::Kind::kAttach && reply.status != 0)
    BreakLink(link, static_cast<cudaError_t>(reply.status), "attach: " + reply.message);
  if (answered.kind == PendingReply::Kind::kDrain) OnDrained(*link, reply.result);
  if (answered.kind != PendingReply::Kind::kCall) return;
  *answered.waiter->reply = {reply.status, std::move(reply.message), std::move(reply.result)};
  answered.waiter->done = true;
  answered.waiter->changed.notify_one();
}

void CommandChannel::NoteAsyncError(const wire::Reply& reply) {
  if (reply.async_error == 0) return;
  const auto error = static_cast<cudaError_t>(reply.async_error);
  parts_.log.Warn(
      "an asynchronous call failed: " +
      (reply.message.empty() ? "CUDA error " + std::to_string(reply.async_error) : reply.message));
  if (reply.async_error_is_sticky != 0) parts_.health.SetSticky(error);
  if (async_error_ == cudaSuccess) async_error_ = error;
}

void CommandChannel::OnDrained(ExecutorLink& link, std::span<const std::uint8_t> result) {
  wire::DrainReply drained;
  wire::Reader reader(result);
  reader(drained);
  // The executor that recorded the events needs no import.
  const bool knows_all = link.known_version() == journal_.version();
  for (const wire::EventTime& time : drained.events) {
    const auto fields = wire::Encoded(wire::EventImport{time.event, time.completed_ns});
    journal_.Configure(time.event, {wire::EventImport::kCallId, fields}, 0);
  }
  if (knows_all) link.set_known_version(journal_.version());
  CarryOut(lease_.NoteDrained(Moment()));
}

// Only the service thread takes a lease: while it connects, no other lease comes to be held.
bool CommandChannel::OnGrant(const wire::LeaseGrant& grant) {
  Lock lock(mutex_);
  if (lease_.HasExecutor()) return false;
  std::string why;
  const ExecutorLinkPtr link = FindOrOpenLink(lock, grant, why);
  if (!link) {
    parts_.log.Warn("executor " + grant.executor_socket + " cannot be reached: " + why);
    CarryOut(lease_.GrantUnreachable(grant.lease_id, grant.is_explicit, Moment()));
    return true;
  }
  const LeaseActions actions = lease_.Grant(grant.lease_id, grant.is_explicit, Moment());
  lease_link_ = link;
  CarryOut(actions);
  TellExecutor(link);
  if (lease_.state() != ClientLease::State::kHeld) return true;  // the connection broke at once
  if (lease_.is_explicit() && options_.traces_requests)
    TraceSection(("request (lease " + std::to_string(lease_.id()) + ")").c_str());
  parts_.daemon.Send(wire::LeaseAck{grant.lease_id});
  return true;
}

ExecutorLinkPtr CommandChannel::FindOrOpenLink(Lock& lock, const wire::LeaseGrant& grant,
                                               std::string& why) {
  if (ExecutorLinkPtr known = links_.Find(grant.executor_socket, grant.executor_epoch))
    return known;
  lock.unlock();
  Result<std::unique_ptr<FrameStream>, int> stream =
      OpenFrameStream(parts_.http2, options_.transport, grant.executor_socket, options_.attach,
                      std::chrono::steady_clock::now() + kConnectPatience);
  lock.lock();
  if (!stream) {
    why = stream.failure().message;
    return nullptr;
  }
  // An earlier process at the same socket is gone, together with all that it was told.
  for (const ExecutorLinkPtr& gone : links_.At(grant.executor_socket))
    BreakLink(gone, cudaErrorDevicesUnavailable, "the executor was restarted");
  auto link = std::make_shared<ExecutorLink>(std::move(stream).value());
  links_.Add(grant.executor_socket, grant.executor_epoch, link);
  return link;
}

// Sends everything without waiting; the next reader of the link takes the replies.
void CommandChannel::TellExecutor(const ExecutorLinkPtr& link) {
  if (link->BeginAttach()) {
    batch_.Append(CallId(wire::ProtocolCall::kAttach), wire::Encoded(options_.attach));
    link->Expect({PendingReply::Kind::kAttach, CallId(wire::ProtocolCall::kAttach), nullptr});
    SendBatch(*link);
  }
  journal_.Replay(link->known_version(), [&](const Command& command) {
    batch_.Append(command.call_id, command.fields);
    if (batch_.HasMaxBytes()) SendBatch(*link);
  });
  if (!batch_.empty()) SendBatch(*link);
  link->set_known_version(journal_.version());
  Pump(link);
}

void CommandChannel::OnRevoke(const wire::LeaseRevoke& revoke) {
  const Lock lock(mutex_);
  CarryOut(lease_.Revoke(revoke.lease_id, Moment()));
}

void CommandChannel::OnLost(const wire::LeaseLost& lost) {
  const auto error = lost.error == 0 ? cudaErrorUnknown : static_cast<cudaError_t>(lost.error);
  Lock lock(mutex_);
  if (lost.sticky) parts_.health.SetSticky(error);
  if (lost.sticky && lost.lease_id == lease_.id() && lease_link_)
    AwaitLastWords(lock, ExecutorLinkPtr(lease_link_));
  if (lost.lease_id == lease_.id() && lease_.id() != 0) {
    parts_.log.Warn("the GPU was lost: " + lost.message);
    CarryOut(lease_.NoteLossByDaemon(error, Moment()));
    if (lease_link_) BreakLink(ExecutorLinkPtr(lease_link_), error, lost.message);
  }
  NotifyAll();
}

// An executor that has lost its context to this session's work answers the waiting calls with the
// driver's description of the failure, and ends. The daemon's message may arrive before.
void CommandChannel::AwaitLastWords(Lock& lock, const ExecutorLinkPtr& link) {
  constexpr std::chrono::seconds kPatience{1};
  const Time until = std::chrono::steady_clock::now() + kPatience;
  while (link->HasWaiter() && !link->is_closed() && std::chrono::steady_clock::now() < until) {
    // The waiting thread reads.
    lock.unlock();
    std::this_thread::sleep_for(kLastWordsPoll);
    lock.lock();
  }
}

void CommandChannel::BreakLink(const ExecutorLinkPtr& link, cudaError_t error,
                               const std::string& why) {
  if (!links_.Remove(link)) return;
  parts_.log.Debug("executor connection: " + why);
  // An executor that lost its context says so on the completion page before the connection ends.
  if (parts_.health.IsOpen()) {
    if (const cudaError_t sticky = parts_.health.Check(); sticky != cudaSuccess) error = sticky;
  }
  const bool tells_program = link->Break(error, why);
  if (lease_link_ == link) CarryOut(lease_.ExecutorLost(error, tells_program, Moment()));
}

void CommandChannel::OnDaemonLost() {
  const Lock lock(mutex_);
  for (const ExecutorLinkPtr& link : links_.All())
    BreakLink(link, cudaErrorDevicesUnavailable, "the daemon is lost");
  NotifyAll();
}

void CommandChannel::NotifyAll() {
  lease_changed_.notify_all();
  room_.notify_all();
}

std::optional<CommandChannel::Time> CommandChannel::Watch(std::vector<Watched>& watched) {
  const Lock lock(mutex_);
  std::optional<Time> next = batch_.Deadline();
  timer_is_armed_ = next.has_value();
  for (const ExecutorLinkPtr& link : links_.All()) {
    const FrameStream::Polled polled = link->EventsToWatch();
    if (polled.events != 0) watched.push_back({link, polled.events, polled.is_ready});
    if (polled.is_ready) next = Time::min();
  }
  const std::optional<Time> idle = lease_.NextIdleCheck(std::chrono::steady_clock::now());
  if (idle && (!next || *idle < *next)) next = idle;
  return next;
}

void CommandChannel::OnReady(const ExecutorLinkPtr& link, short events) {
  Lock lock(mutex_);
  if (link->is_closed()) return;
  if (link->OnEvents(events)) {
    Pump(link);
    room_.notify_all();
  }
  if ((events & (POLLIN | POLLHUP | POLLERR)) == 0 || link->is_being_read()) return;
  Read(lock, link, /*waits=*/false);
  HandOverReading(*link);
}

void CommandChannel::OnTimers() {
  const Lock lock(mutex_);
  const LeaseMoment at = Moment();
  if (const std::optional<Time> deadline = batch_.Deadline(); deadline && at.now >= *deadline)
    FlushBatch();
  const bool is_busy = !batch_.empty() || (lease_link_ && lease_link_->AwaitsReply());
  CarryOut(lease_.CheckIdle(is_busy, at));
}

void CommandChannel::Create(std::uint64_t handle, const Command& create) {
  const Lock lock(mutex_);
  journal_.Create(handle, create);
  TellChange(create);
  TraceCommand(create.fields.size());
}

cudaError_t CommandChannel::Configure(std::uint64_t handle, const Command& setting,
                                      std::uint64_t key) {
  const Lock lock(mutex_);
  if (!journal_.Configure(handle, setting, key)) return cudaErrorInvalidResourceHandle;
  TellChange(setting);
  TraceCommand(setting.fields.size());
  return cudaSuccess;
}

cudaError_t CommandChannel::Destroy(std::uint64_t handle, const Command& destroy) {
  const Lock lock(mutex_);
  if (!journal_.Destroy(handle, destroy)) return cudaErrorInvalidResourceHandle;
  if (destroy.call_id != 0) {
    TellChange(destroy);
    TraceCommand(destroy.fields.size());
  }
  journal_.Trim(links_.OldestKnownVersion(journal_.version()));
  return cudaSuccess;
}

// The lease's executor learns a change of the journal now, others with their next grant.
void CommandChannel::TellChange(const Command& change) {
  if (lease_.state() != ClientLease::State::kHeld) return;
  lease_link_->set_known_version(journal_.version());
  batch_.AppendLater(change);
  ++uses_;
  FlushInTime();
}

bool CommandChannel::IsLive(std::uint64_t handle) const {
  const Lock lock(mutex_);
  return journal_.IsLive(handle);
}

}  // namespace torpor::shim
