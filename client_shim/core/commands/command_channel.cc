#include "client_shim/core/commands/command_channel.h"

#include <poll.h>

#include <algorithm>
#include <cstdio>
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
    if (replay_.record().IsFull() && !replay_.is_checkpoint_due()) {
      BeginCheckpoint();
      continue;
    }
    if (lease_link_->unsent_bytes() <= kMaxUnsentBytes && !replay_.record().IsOverfull())
      return cudaSuccess;
    const TracedWait wait(TracedWaitFor::kRoom);
    room_.wait(lock);
  }
}

cudaError_t CommandChannel::Enqueue(const Command& command) {
  if (command.fields.size() > kMaxCommandFields) return cudaErrorInvalidValue;
  {
    Lock lock(mutex_);
    TORPOR_TRY(AwaitRoom(lock, false));
    const std::uint64_t number = ++uses_;
    replay_.record().OnCommand(command, number);
    batch_.AppendLater(command, number);
    if (command.piece) parts_.ring.Submitted(*command.piece);
    if (const wire::StreamMark mark = replay_.record().MarkBehind(command, number); mark.value != 0)
      batch_.Append(wire::StreamMark::kCallId, wire::Encoded(mark), ++uses_);
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
  const std::uint64_t use = ++uses_;
  replay_.record().OnCommand(command, use);
  replay_.record().OnCall(use);
  batch_.Append(command.call_id, command.fields, use);
  waiter.link = lease_link_;
  waiter.link->Expect({PendingReply::Kind::kCall, command.call_id, &waiter, use});
  FlushBatch();
  while (!waiter.done) {
    // Another executor may have the command by now.
    const ExecutorLinkPtr link = waiter.link;
    if (!link || link->is_being_read())
      waiter.changed.wait(lock);
    else
      Read(lock, link, /*waits=*/true);
  }
  if (waiter.link) HandOverReading(*waiter.link);
  if (waiter.error == cudaSuccess && lease_link_ == waiter.link) lease_.NoteAnswer(use);
  if (waiter.error == cudaSuccess && replay_.record().is_on())
    replay_.NoteSeen(lock, command, use, reply);
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
  return lease_.IsDrained() && !replay_.owes_work();
}

double CommandChannel::RecentShare() const {
  const Lock lock(mutex_);
  return lease_.RecentShare(std::chrono::steady_clock::now());
}

void CommandChannel::CarryOut(const LeaseActions& actions) {
  // OnResumed makes up for a request.
  if (actions.requests && !replay_.daemon_is_gone()) parts_.daemon.Send(wire::LeaseRequest{});
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
  replay_.OnBatch(batch_);
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
    // The program has had the text before an executor died.
    if (link->IsReplaying()) return;
    printed_.Add(reply.result);
    if (!reply.message.empty()) parts_.log.Warn(reply.message);
    return;
  }
  if (answered.kind == PendingReply::Kind::kReplayed) {
    const std::string difference = replay_.Compare(reply, answered.number);
    if (!difference.empty()) FailReplay(difference);
    return;
  }
  if (reply.status != 0 && !reply.message.empty())
    parts_.log.Debug("call " + std::to_string(reply.call_id) + ": " + reply.message);
  NoteAsyncError(reply);
  if (answered.kind == PendingReply::Kind::kAttach && reply.status != 0)
    BreakLink(link, static_cast<cudaError_t>(reply.status), "attach: " + reply.message);
  if (answered.kind == PendingReply::Kind::kDrain) OnDrained(*link, reply.result);
  if (answered.kind == PendingReply::Kind::kCheckpoint) OnCheckpoint(*link, reply);
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
  NoteEventTimes(link, drained.events);
  replay_.NoteComplete();
  CarryOut(lease_.NoteDrained(Moment()));
  if (replay_.HasSaves()) parts_.wake();
}

void CommandChannel::NoteEventTimes(ExecutorLink& link,
                                    const std::vector<wire::EventTime>& events) {
  // The executor that recorded the events needs no import.
  const bool knows_all = link.known_version() == journal_.version();
  for (const wire::EventTime& time : events) {
    const auto fields = wire::Encoded(wire::EventImport{time.event, time.completed_ns});
    const Command import{wire::EventImport::kCallId, fields};
    if (!journal_.Configure(time.event, import, 0)) continue;
    replay_.record().OnChange(
        JournalChange::Of(JournalChange::Kind::kConfigure, time.event, import), uses_,
        /*is_command=*/false);
  }
  if (knows_all) link.set_known_version(journal_.version());
}

// Only the service thread takes a lease: while it connects, no other lease comes to be held.
bool CommandChannel::OnGrant(const wire::LeaseGrant& grant) {
  Lock lock(mutex_);
  if (lease_.HasExecutor()) return false;
  std::string why;
  const ExecutorLinkPtr link = FindOrOpenLink(lock, grant, why);
  if (!link && options_.replays) {
    // It has died, and the daemon will say so.
    lease_.Grant(grant.lease_id, grant.is_explicit, Moment());
    lease_.Suspend(Moment());
    replay_.SuspendUnused();
    return true;
  }
  if (!link) {
    parts_.log.Warn("executor " + grant.executor_socket + " cannot be reached: " + why);
    CarryOut(lease_.GrantUnreachable(grant.lease_id, grant.is_explicit, Moment()));
    return true;
  }
  const LeaseActions actions = lease_.Grant(grant.lease_id, grant.is_explicit, Moment());
  lease_link_ = link;
  CarryOut(actions);
  std::string obstacle;
  if (replay_.NeedsReplay(grant, obstacle)) {
    if (!obstacle.empty()) {
      FailReplay(obstacle);
      return true;
    }
    Replay(link);
  } else {
    TellExecutor(link);
  }
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
  Result<std::unique_ptr<FrameStream>, int> stream = OpenFrameStream(
      parts_.http2, options_.transport, SocketBeside(options_.daemon_socket, grant.executor_socket),
      options_.attach, std::chrono::steady_clock::now() + kConnectPatience);
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
  Introduce(*link);
  journal_.Replay(link->known_version(), [&](const Command& command) {
    batch_.Append(command.call_id, command.fields);
    if (batch_.HasMaxBytes()) SendBatch(*link);
  });
  if (!batch_.empty()) SendBatch(*link);
  link->set_known_version(journal_.version());
  Pump(link);
}

void CommandChannel::Introduce(ExecutorLink& link) {
  if (!link.BeginAttach()) return;
  batch_.Append(CallId(wire::ProtocolCall::kAttach), wire::Encoded(options_.attach));
  link.Expect({PendingReply::Kind::kAttach, CallId(wire::ProtocolCall::kAttach)});
  SendBatch(link);
}

void CommandChannel::OnRevoke(const wire::LeaseRevoke& revoke) {
  const Lock lock(mutex_);
  CarryOut(lease_.Revoke(revoke.lease_id, Moment()));
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
  const std::optional<Time> replay = replay_.NextTimer(lease_.state());
  if (replay && (!next || *replay < *next)) next = replay;
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
  OnReplayTimers(at.now);
  if (replay_.AdvanceSaves(lease_.state())) BeginCheckpoint();
}

void CommandChannel::Create(std::uint64_t handle, const Command& create) {
  const Lock lock(mutex_);
  journal_.Create(handle, create);
  TellChange(JournalChange::Kind::kCreate, handle, create, 0);
  TraceCommand(create.fields.size());
}

cudaError_t CommandChannel::Configure(std::uint64_t handle, const Command& setting,
                                      std::uint64_t key) {
  const Lock lock(mutex_);
  if (!journal_.Configure(handle, setting, key)) return cudaErrorInvalidResourceHandle;
  TellChange(JournalChange::Kind::kConfigure, handle, setting, key);
  TraceCommand(setting.fields.size());
  return cudaSuccess;
}

cudaError_t CommandChannel::Destroy(std::uint64_t handle, const Command& destroy) {
  const Lock lock(mutex_);
  if (!journal_.Destroy(handle, destroy)) return cudaErrorInvalidResourceHandle;
  TellChange(JournalChange::Kind::kDestroy, handle, destroy, 0);
  if (destroy.call_id != 0) TraceCommand(destroy.fields.size());
  journal_.Trim(links_.OldestKnownVersion(journal_.version()));
  return cudaSuccess;
}

// The lease's executor learns a change of the journal now, others with their next grant.
void CommandChannel::TellChange(JournalChange::Kind kind, std::uint64_t handle,
                                const Command& change, std::uint64_t key) {
  const bool is_told = lease_.state() == ClientLease::State::kHeld && change.call_id != 0;
  const std::uint64_t number = is_told ? ++uses_ : uses_.load();
  if (replay_.record().is_on()) {
    replay_.record().OnCommand(change, number);
    replay_.record().OnChange(JournalChange::Of(kind, handle, change, key), number, is_told);
  }
  if (!is_told) return;
  lease_link_->set_known_version(journal_.version());
  batch_.AppendLater(change, number);
  FlushInTime();
}

bool CommandChannel::IsLive(std::uint64_t handle) const {
  const Lock lock(mutex_);
  return journal_.IsLive(handle);
}

// --- Replays -------------------------------------------------------------------------------------

bool CommandChannel::DefersFrees() const {
  const Lock lock(mutex_);
  const ReplayRecord& record = replay_.record();
  return record.is_on() && !record.has_lasting_obstacle() &&
         (record.log().has_commands() || batch_.numbered() > 0);
}

void CommandChannel::NotePinned(std::uint64_t address, std::uint64_t bytes) {
  const Lock lock(mutex_);
  replay_.record().NotePinned(address, bytes);
}

void CommandChannel::NoteLastingObstacle(const std::string& why) {
  const Lock lock(mutex_);
  replay_.record().NoteLastingObstacle(why);
}

void CommandChannel::ForgetMemory() {
  const Lock lock(mutex_);
  if (!batch_.empty()) FlushBatch();
  replay_.ForgetMemory(uses_);
}

cudaError_t CommandChannel::SaveMemory() {
  Lock lock(mutex_);
  TORPOR_TRY(AwaitLease(lock, false));
  BeginCheckpoint();
  const TracedWait wait(TracedWaitFor::kRoom);
  while (replay_.is_checkpoint_due()) {
    TORPOR_TRY(parts_.health.sticky());
    room_.wait(lock);
  }
  return cudaSuccess;
}

void CommandChannel::BeginSavingMemory() {
  const Lock lock(mutex_);
  BeginCheckpoint();
}

// Does not wait: the program goes on while the executor saves. The service thread, or a waiting
// one, reads the answer.
void CommandChannel::BeginCheckpoint() {
  if (lease_.state() != ClientLease::State::kHeld || !replay_.BeginCheckpoint()) return;
  batch_.Append(CallId(wire::ProtocolCall::kCheckpoint), {});
  lease_link_->Expect(
      {PendingReply::Kind::kCheckpoint, CallId(wire::ProtocolCall::kCheckpoint), nullptr});
  FlushBatch();
  parts_.wake();
}

void CommandChannel::OnCheckpoint(ExecutorLink& link, const wire::Reply& reply) {
  wire::CheckpointReply saved;
  wire::Reader reader(reply.result);
  if (reply.status == 0) reader(saved);
  if (reply.status == 0 && reader.done()) {
    NoteEventTimes(link, saved.events);
    replay_.OnCheckpoint(saved.saved_command);
  } else {
    replay_.OnCheckpointFailed(reply.message);
  }
  // The service thread begins the next one: this thread is reading the link.
  if (replay_.HasSaves()) parts_.wake();
  room_.notify_all();
}

void CommandChannel::OnSaveMemory(const wire::SaveMemory& save) {
  const Lock lock(mutex_);
  replay_.AddSave(save);
}

void CommandChannel::OnSaved(const wire::MemorySaved& saved) {
  const Lock lock(mutex_);
  replay_.TrimTo(saved.saved_command);
}

// Sends all without waiting, as TellExecutor does.
void CommandChannel::Replay(const ExecutorLinkPtr& link) {
  Introduce(*link);
  replay_.Replay(link, batch_, [&] { SendBatch(*link); });
  link->set_known_version(journal_.version());
  Pump(link);
  HandOverReading(*link);
  parts_.wake();
}

void CommandChannel::OnReplayTimers(Time now) {
  const std::optional<Time> due = replay_.NextTimer(lease_.state());
  if (!due || now < *due) return;
  if (lease_.state() == ClientLease::State::kHeld) return BeginCheckpoint();
  FailReplay("the connection to its executor broke, and the executor did not end");
}

}  // namespace torpor::shim
