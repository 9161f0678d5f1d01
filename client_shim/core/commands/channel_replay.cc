#include <chrono>
#include <set>
#include <string>
#include <utility>

#include "base/try.h"
#include "client_shim/core/call_tracer.h"
#include "client_shim/core/commands/command_channel.h"

// The parts of CommandChannel that carry a session from a dead executor to another one.
namespace torpor::shim {
namespace {

// An executor that dies as often during a replay is likely to be killed by what is replayed.
constexpr int kMostReplays = 3;
// The daemon notices the end of a process at once.
constexpr std::chrono::seconds kSuspensionPatience{5};

constexpr std::uint32_t kCheckpointId = static_cast<std::uint32_t>(wire::ProtocolCall::kCheckpoint);

std::uint64_t FirstField(std::span<const std::uint8_t> fields) {
  std::uint64_t first = 0;
  wire::Reader reader(fields);
  reader(first);
  return first;
}

}  // namespace

// --- Recording -----------------------------------------------------------------------------------

void CommandChannel::NoteSeen(Lock& lock, const Command& command, std::uint64_t number,
                              const CallReply& reply) {
  replays_ = 0;
  ReplayLog::Seen seen{reply.status, std::nullopt};
  if (reply.status == 0) {
    std::uint64_t offset = 0;
    const std::uint64_t bytes = ReplayRecord::WindowBytes(command, offset);
    // Megabytes are hashed without the mutex: the piece is the caller's.
    if (bytes > 0) lock.unlock();
    const std::span<const std::uint8_t> window =
        bytes > 0 ? std::span(parts_.ring.At(offset), bytes) : std::span<const std::uint8_t>();
    seen.hash = ReplayRecord::HashOf(command, reply.result, window);
    if (bytes > 0) lock.lock();
  }
  record_.OnSeen(number, seen);
}

bool CommandChannel::DefersFrees() const {
  const Lock lock(mutex_);
  return record_.is_on() && !record_.has_lasting_obstacle() &&
         (record_.log().has_commands() || batch_.numbered() > 0);
}

void CommandChannel::NoteArenaUse() {
  const Lock lock(mutex_);
  record_.NoteArenaUse();
}

void CommandChannel::NoteLastingObstacle(const std::string& why) {
  const Lock lock(mutex_);
  record_.NoteLastingObstacle(why);
}

void CommandChannel::TellObstacle() {
  told_obstacle_ = record_.obstacle();
  if (record_.is_on() && !told_obstacle_.empty())
    parts_.log.Debug("until its memory is saved the session cannot be replayed: " + told_obstacle_);
}

void CommandChannel::ForgetMemory() {
  const Lock lock(mutex_);
  if (!batch_.empty()) FlushBatch();
  record_.Restart(uses_);
  NoteSaved(uses_);
}

// --- Checkpoints ---------------------------------------------------------------------------------

cudaError_t CommandChannel::SaveMemory() {
  Lock lock(mutex_);
  TORPOR_TRY(AwaitLease(lock, false));
  if (!is_checkpoint_due_) BeginCheckpoint();
  const TracedWait wait(TracedWaitFor::kRoom);
  while (is_checkpoint_due_) {
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
  if (!record_.is_on() || is_checkpoint_due_ || lease_.state() != ClientLease::State::kHeld) return;
  is_checkpoint_due_ = true;
  batch_.Append(kCheckpointId, {});
  lease_link_->Expect({PendingReply::Kind::kCheckpoint, kCheckpointId});
  FlushBatch();
  parts_.wake();
}

void CommandChannel::OnCheckpoint(ExecutorLink& link, const wire::Reply& reply) {
  is_checkpoint_due_ = false;
  wire::CheckpointReply saved;
  wire::Reader reader(reply.result);
  if (reply.status == 0) reader(saved);
  if (reply.status == 0 && reader.done()) {
    NoteEventTimes(link, saved.events);
    owes_work_ = false;
    replays_ = 0;
    if (record_.TrimTo(saved.saved_command)) NoteSaved(saved.saved_command);
  } else {
    record_.NoteLastingObstacle("the memory could not be saved: " + reply.message);
    record_.Stop();
  }
  recorded_since_ = std::chrono::steady_clock::now();
  room_.notify_all();
}

void CommandChannel::OnSaved(const wire::MemorySaved& saved) {
  const Lock lock(mutex_);
  if (record_.TrimTo(saved.saved_command)) NoteSaved(saved.saved_command);
}

void CommandChannel::NoteSaved(std::uint64_t command) {
  Journal& objects = record_.log().objects();
  objects.Trim(links_.OldestKnownVersion(objects.version()));
  if (parts_.on_saved) parts_.on_saved(command);
}

std::optional<CommandChannel::Time> CommandChannel::NextReplayTimer() const {
  if (lease_.state() == ClientLease::State::kSuspended)
    return suspended_since_ + kSuspensionPatience;
  const bool ages = lease_.state() == ClientLease::State::kHeld && record_.is_on() &&
                    record_.log().has_commands() && record_.obstacle().empty() &&
                    !is_checkpoint_due_;
  return ages ? std::optional(recorded_since_ + options_.replay_age) : std::nullopt;
}

void CommandChannel::OnReplayTimers(Time now) {
  const std::optional<Time> due = NextReplayTimer();
  if (!due || now < *due) return;
  if (lease_.state() == ClientLease::State::kHeld) return BeginCheckpoint();
  FailReplay("the connection to its executor broke, and the executor did not end");
}

// --- The loss of an executor ---------------------------------------------------------------------

// Calls that wait go on waiting. What was batched is as good as sent.
void CommandChannel::Suspend(const ExecutorLinkPtr& link, const std::string& why) {
  for (const PendingReply& pending : link->Suspend(why))
    if (pending.waiter) unanswered_[pending.number] = pending.waiter;
  record_.OnBatch(batch_.first_number(), batch_.numbered(), batch_.commands());
  batch_.Clear();
  lease_.Suspend(Moment());
  lease_link_ = nullptr;
  suspended_since_ = std::chrono::steady_clock::now();
  owes_work_ = true;
  is_checkpoint_due_ = false;
  for (const auto& [number, waiter] : unanswered_) waiter->changed.notify_one();
  NotifyAll();
  parts_.wake();
}

// The daemon knows, too. The session asks for another GPU at once: the program may only look at the
// completion page.
void CommandChannel::EndSuspension() {
  CarryOut(lease_.EndSuspended(Moment()));
  if (owes_work_) CarryOut(lease_.Need());
}

void CommandChannel::FailUnanswered(cudaError_t error) {
  for (const auto& [number, waiter] : std::exchange(unanswered_, {})) {
    waiter->error = error;
    waiter->done = true;
    waiter->changed.notify_one();
  }
}

void CommandChannel::FailReplay(const std::string& why) {
  if (std::exchange(has_failed_, true)) return;
  parts_.log.Warn("the session is lost: what it did on a GPU that died cannot be replayed: " + why);
  parts_.health.SetStickyIfHealthy(cudaErrorDevicesUnavailable);
  parts_.daemon.Send(wire::ReplayFailed{why});
  record_.Stop();
  owes_work_ = false;
  FailUnanswered(cudaErrorDevicesUnavailable);
  if (lease_link_) {
    BreakLink(ExecutorLinkPtr(lease_link_), cudaErrorDevicesUnavailable, why);
  } else {
    parts_.slots.CompleteAll();
    parts_.ring.DropSubmitted();
    if (lease_.state() == ClientLease::State::kSuspended) CarryOut(lease_.EndSuspended(Moment()));
  }
  NotifyAll();
}

// --- The replay ----------------------------------------------------------------------------------

// `obstacle` is left empty if the session can be replayed.
bool CommandChannel::NeedsReplay(const wire::LeaseGrant& grant, std::string& obstacle) {
  const bool is_trimmed = record_.TrimTo(grant.saved_command);
  if (is_trimmed) NoteSaved(grant.saved_command);
  if (!grant.replays && !owes_work_) return false;
  const ReplayLog& log = record_.log();
  if (record_.is_on() && !grant.replays) {
    obstacle = "the daemon takes the memory on the GPU for complete";
  } else if (record_.is_on() && !is_trimmed) {
    obstacle = "the memory was saved as of command " + std::to_string(grant.saved_command) +
               ", and the record goes from " + std::to_string(log.saved()) + " to " +
               std::to_string(log.last());
  } else if (!record_.obstacle().empty()) {  // or nothing is recorded
    obstacle = record_.obstacle();
  } else if (++replays_ > kMostReplays) {
    obstacle = "the GPU died " + std::to_string(kMostReplays) + " times during the replay";
  }
  return true;
}

// Sends all without waiting, as TellExecutor does: the objects as of the checkpoint, then what the
// session has done since.
void CommandChannel::Replay(const ExecutorLinkPtr& link) {
  Introduce(*link);
  record_.log().objects().Replay(link->known_version(),
                                 [&](const Command& command) { SendUnnumbered(*link, command); });
  std::set<std::uint64_t> recorded;  // events that this executor records itself
  record_.Visit([this](std::uint64_t number) { return unanswered_.contains(number); },
                {.on_step =
                     [&](const ReplayRecord::Step& step) {
                       if (step.call_id == wire::EventRecord::kCallId)
                         recorded.insert(FirstField(step.fields.back()));
                       SendStep(link, step);
                     },
                 .on_change =
                     [&](const JournalChange& change) {
                       const bool is_stale = change.call_id == wire::EventImport::kCallId &&
                                             recorded.contains(change.handle);
                       if (!is_stale && change.call_id != 0)
                         SendUnnumbered(*link, change.command());
                     }});
  if (!batch_.empty()) SendBatch(*link);
  // A call that was left out would wait for ever.
  FailUnanswered(cudaErrorUnknown);
  link->set_known_version(journal_.version());
  parts_.log.Debug("replays commands " + std::to_string(record_.log().saved() + 1) + " to " +
                   std::to_string(record_.log().last()));
  Pump(link);
  HandOverReading(*link);
  parts_.wake();
}

void CommandChannel::SendUnnumbered(ExecutorLink& link, const Command& command) {
  if (batch_.numbered() > 0) SendBatch(link);
  batch_.Append(command.call_id, command.fields);
  if (batch_.HasMaxBytes()) SendBatch(link);
}

void CommandChannel::SendStep(const ExecutorLinkPtr& link, const ReplayRecord::Step& step) {
  for (std::size_t i = 0; i + 1 < step.fields.size(); ++i)
    SendUnnumbered(*link, {step.call_id, step.fields[i]});
  const bool is_next =
      batch_.numbered() > 0 && batch_.first_number() + batch_.numbered() == step.number;
  if (!batch_.empty() && !is_next) SendBatch(*link);
  batch_.Append(step.call_id, step.fields.back(), step.number);
  if (step.is_call) {
    const auto waiting = unanswered_.extract(step.number);
    if (waiting.empty()) {
      link->Expect({PendingReply::Kind::kReplayed, step.call_id, nullptr, step.number});
    } else {
      waiting.mapped()->link = link;
      link->Expect({PendingReply::Kind::kCall, step.call_id, waiting.mapped(), step.number});
    }
  }
  if (batch_.HasMaxBytes()) SendBatch(*link);
}

void CommandChannel::OnReplayed(const wire::Reply& reply, std::uint64_t number) {
  const std::string difference = record_.Compare(number, reply.call_id, reply.status, reply.result);
  if (!difference.empty()) FailReplay(difference);
}

}  // namespace torpor::shim
