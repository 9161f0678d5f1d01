#include "client_shim/core/commands/channel_replay.h"

#include <set>
#include <span>
#include <utility>

#include "proto/cuda_api/cudart_commands.h"

namespace torpor::shim {
namespace {

// An executor that dies as often during a replay is likely to be killed by what is replayed.
constexpr int kMostReplays = 3;
// The daemon notices the end of a process at once.
constexpr std::chrono::seconds kSuspensionPatience{5};

std::uint64_t FirstField(std::span<const std::uint8_t> fields) {
  std::uint64_t first = 0;
  wire::Reader reader(fields);
  reader(first);
  return first;
}

// Writes the commands of a replay for one executor. The calls that threads wait for are taken out
// of `unanswered`, and wait for this executor from then on.
class ReplayWriter {
 public:
  ReplayWriter(const ExecutorLinkPtr& link, BatchWriter& batch, const std::function<void()>& send,
               std::map<std::uint64_t, ReplyWaiter*>& unanswered)
      : link_(link), batch_(batch), send_(send), unanswered_(unanswered) {}

  void WriteUnnumbered(const Command& command) {
    if (batch_.numbered() > 0) send_();
    batch_.Append(command.call_id, command.fields);
    if (batch_.HasMaxBytes()) send_();
  }

  void Write(const ReplayRecord::Step& step) {
    if (step.call_id == wire::EventRecord::kCallId)
      recorded_.insert(FirstField(step.fields.back()));
    for (std::size_t i = 0; i + 1 < step.fields.size(); ++i)
      WriteUnnumbered({step.call_id, step.fields[i]});
    const bool is_next =
        batch_.numbered() > 0 && batch_.first_number() + batch_.numbered() == step.number;
    if (!batch_.empty() && !is_next) send_();
    batch_.Append(step.call_id, step.fields.back(), step.number);
    if (step.is_call) Expect(step);
    if (batch_.HasMaxBytes()) send_();
  }

  void Write(const JournalChange& change) {
    const bool is_stale =
        change.call_id == wire::EventImport::kCallId && recorded_.contains(change.handle);
    if (!is_stale && change.call_id != 0) WriteUnnumbered(change.command());
  }

 private:
  void Expect(const ReplayRecord::Step& step) {
    const auto waiting = unanswered_.extract(step.number);
    if (waiting.empty())
      return link_->Expect({PendingReply::Kind::kReplayed, step.call_id, nullptr, step.number});
    waiting.mapped()->link = link_;
    link_->Expect({PendingReply::Kind::kCall, step.call_id, waiting.mapped(), step.number});
  }

  const ExecutorLinkPtr& link_;
  BatchWriter& batch_;
  const std::function<void()>& send_;
  std::map<std::uint64_t, ReplyWaiter*>& unanswered_;
  std::set<std::uint64_t> recorded_;  // events that this executor records itself
};

}  // namespace

ChannelReplay::ChannelReplay(const ChannelOptions& options, const ChannelParts& parts,
                             const ExecutorLinks& links)
    : options_(options),
      parts_(parts),
      links_(links),
      record_(options.replay_bytes, options.arena, parts.slots, parts.uploads),
      saves_(parts.daemon) {}

// --- Recording -----------------------------------------------------------------------------------

void ChannelReplay::OnBatch(const BatchWriter& batch) {
  if (record_.is_on() && !record_.log().has_commands())
    recorded_since_ = std::chrono::steady_clock::now();
  record_.OnBatch(batch.first_number(), batch.numbered(), batch.commands());
  if (record_.obstacle() != told_obstacle_) TellObstacle();
}

void ChannelReplay::TellObstacle() {
  told_obstacle_ = record_.obstacle();
  if (record_.is_on() && !told_obstacle_.empty())
    parts_.log.Debug("until its memory is saved the session cannot be replayed: " + told_obstacle_);
}

void ChannelReplay::NoteSeen(Lock& lock, const Command& command, std::uint64_t number,
                             const CallReply& reply) {
  replays_ = 0;
  ReplayLog::Seen seen{reply.status, std::nullopt};
  if (reply.status == 0) {
    std::uint64_t offset = 0;
    const std::uint64_t bytes = ReplayRecord::WindowBytes(command, offset);
    // The piece is the caller's.
    if (bytes > 0) lock.unlock();
    const std::span<const std::uint8_t> window =
        bytes > 0 ? std::span(parts_.ring.At(offset), bytes) : std::span<const std::uint8_t>();
    seen.hash = ReplayRecord::HashOf(command, reply.result, window);
    if (bytes > 0) lock.lock();
  }
  record_.OnSeen(number, seen);
}

void ChannelReplay::NoteComplete() {
  owes_work_ = false;
  replays_ = 0;
}

// --- Checkpoints ---------------------------------------------------------------------------------

bool ChannelReplay::BeginCheckpoint() {
  if (!record_.is_on() && !HasSaves()) return false;
  if (std::exchange(is_checkpoint_due_, true)) return false;
  saves_.Begin();
  return true;
}

void ChannelReplay::OnCheckpoint(std::uint64_t saved_command) {
  is_checkpoint_due_ = false;
  NoteComplete();
  TrimTo(saved_command);
  saves_.Answer(AwaitedSaves::Outcome::kSaved);
  recorded_since_ = std::chrono::steady_clock::now();
}

void ChannelReplay::OnCheckpointFailed(const std::string& why) {
  is_checkpoint_due_ = false;
  record_.NoteLastingObstacle("the memory could not be saved: " + why);
  record_.Stop();
  saves_.Answer(AwaitedSaves::Outcome::kFailed, why);
  recorded_since_ = std::chrono::steady_clock::now();
}

void ChannelReplay::DropCheckpoint() {
  is_checkpoint_due_ = false;
  saves_.Restart();
}

bool ChannelReplay::AdvanceSaves(ClientLease::State state) {
  if (!HasSaves()) return false;
  switch (state) {
    case ClientLease::State::kHeld:
      return true;
    // Until the daemon, too, knows that the lease is over: it then saves what is on the GPU.
    case ClientLease::State::kReturning:
    case ClientLease::State::kSuspended:
      return false;
    case ClientLease::State::kNone:
    case ClientLease::State::kRequested:
    case ClientLease::State::kLost:
      saves_.AnswerAllWithoutLease();
      return false;
  }
  return false;
}

bool ChannelReplay::TrimTo(std::uint64_t command) {
  if (!record_.TrimTo(command)) return false;
  Journal& objects = record_.log().objects();
  objects.Trim(links_.OldestKnownVersion(objects.version()));
  if (parts_.on_saved) parts_.on_saved(command);
  return true;
}

void ChannelReplay::ForgetMemory(std::uint64_t command) {
  record_.Restart(command);
  TrimTo(command);
}

// --- The loss of an executor ---------------------------------------------------------------------

void ChannelReplay::Suspend(const std::deque<PendingReply>& unanswered, BatchWriter& batch) {
  for (const PendingReply& pending : unanswered)
    if (pending.waiter) unanswered_[pending.number] = pending.waiter;
  record_.OnBatch(batch.first_number(), batch.numbered(), batch.commands());
  batch.Clear();
  SuspendUnused();
  owes_work_ = true;
  DropCheckpoint();
  for (const auto& [number, waiter] : unanswered_) waiter->changed.notify_one();
}

void ChannelReplay::SuspendUnused() { suspended_since_ = std::chrono::steady_clock::now(); }

void ChannelReplay::FailUnanswered(cudaError_t error) {
  for (const auto& [number, waiter] : std::exchange(unanswered_, {})) {
    waiter->error = error;
    waiter->done = true;
    waiter->changed.notify_one();
  }
}

bool ChannelReplay::Fail(const std::string& why) {
  if (failure_) return false;
  failure_ = why;
  parts_.log.Warn("the session is lost: what it did on a GPU that died cannot be replayed: " + why);
  parts_.health.SetStickyIfHealthy(cudaErrorDevicesUnavailable);
  if (!daemon_is_gone_) parts_.daemon.Send(wire::ReplayFailed{why});
  record_.Stop();
  owes_work_ = false;
  FailUnanswered(cudaErrorDevicesUnavailable);
  return true;
}

void ChannelReplay::NoteDaemonGone() {
  daemon_is_gone_ = true;
  saves_.Clear();
  replays_ = 0;  // the executor does not die of what is replayed
}

void ChannelReplay::NoteDaemonBack() {
  daemon_is_gone_ = false;
  if (failure_) parts_.daemon.Send(wire::ReplayFailed{*failure_});
}

// --- The replay ----------------------------------------------------------------------------------

bool ChannelReplay::NeedsReplay(const wire::LeaseGrant& grant, std::string& obstacle) {
  const bool is_trimmed = TrimTo(grant.saved_command);
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

void ChannelReplay::Replay(const ExecutorLinkPtr& link, BatchWriter& batch,
                           const std::function<void()>& send) {
  ReplayWriter writer(link, batch, send, unanswered_);
  record_.log().objects().Replay(link->known_version(),
                                 [&](const Command& command) { writer.WriteUnnumbered(command); });
  record_.Visit([this](std::uint64_t number) { return unanswered_.contains(number); },
                {.on_step = [&](const ReplayRecord::Step& step) { writer.Write(step); },
                 .on_change = [&](const JournalChange& change) { writer.Write(change); }});
  if (!batch.empty()) send();
  // A call that was left out would wait for ever.
  FailUnanswered(cudaErrorUnknown);
  parts_.log.Debug("replays commands " + std::to_string(record_.log().saved() + 1) + " to " +
                   std::to_string(record_.log().last()));
}

std::string ChannelReplay::Compare(const wire::Reply& reply, std::uint64_t number) const {
  return record_.Compare(number, reply.call_id, reply.status, reply.result);
}

// --- Timers --------------------------------------------------------------------------------------

std::optional<ChannelReplay::Time> ChannelReplay::NextTimer(ClientLease::State state) const {
  if (daemon_is_gone_) return std::nullopt;
  if (state == ClientLease::State::kSuspended) return suspended_since_ + kSuspensionPatience;
  const bool ages = state == ClientLease::State::kHeld && record_.is_on() &&
                    record_.log().has_commands() && record_.obstacle().empty() &&
                    !is_checkpoint_due_;
  return ages ? std::optional(recorded_since_ + options_.replay_age) : std::nullopt;
}

}  // namespace torpor::shim
