#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "client_shim/core/commands/awaited_saves.h"
#include "client_shim/core/commands/batch_writer.h"
#include "client_shim/core/commands/channel_parts.h"
#include "client_shim/core/commands/client_lease.h"
#include "client_shim/core/commands/replay_record.h"
#include "client_shim/core/transport/executor_link.h"
#include "client_shim/core/transport/executor_links.h"
#include "proto/wire/batch.h"

namespace torpor::shim {

// Lets a session outlive its executor (docs/decisions/0038): keeps the record of the session's
// work, the checkpoints, and the calls that wait for the next executor, and writes the commands for
// that executor. Lease and streams are the channel's. Guarded by the channel's mutex.
class ChannelReplay {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Lock = std::unique_lock<std::mutex>;

  // All must outlive this object.
  ChannelReplay(const ChannelOptions& options, const ChannelParts& parts,
                const ExecutorLinks& links);

  ReplayRecord& record() { return record_; }
  const ReplayRecord& record() const { return record_; }
  // Whether an executor died in a lease, and its work was not replayed yet.
  bool owes_work() const { return owes_work_; }

  // --- Recording ---
  // The batch's commands are as good as sent.
  void OnBatch(const BatchWriter& batch);
  // The program has got the answer of a call. Releases the lock while megabytes are hashed.
  void NoteSeen(Lock& lock, const Command& command, std::uint64_t number, const CallReply& reply);
  // The executor has completed all work.
  void NoteComplete();

  // --- Checkpoints ---
  // Notes that the executor of the lease is asked for a checkpoint; false if nothing is recorded
  // and the daemon waits for none, or if a checkpoint is due already.
  bool BeginCheckpoint();
  bool is_checkpoint_due() const { return is_checkpoint_due_; }
  // The executor has saved the memory, or could not.
  void OnCheckpoint(std::uint64_t saved_command);
  void OnCheckpointFailed(const std::string& why);
  // The executor that was asked has gone.
  void DropCheckpoint();
  // The daemon wants a checkpoint of all that the session has done up to now.
  void AddSave(const wire::SaveMemory& save) { saves_.Add(save); }
  // Whether the daemon waits for a checkpoint that has not begun.
  bool HasSaves() const { return saves_.HasWaiting(); }
  // Answers the daemon if there is no lease for a checkpoint. Returns whether one is to begin.
  bool AdvanceSaves(ClientLease::State state);
  // The host image is as of `command`. False, without effect, if the record does not go with that.
  bool TrimTo(std::uint64_t command);
  // All memory of the session is about to go: nothing up to `command` is replayed.
  void ForgetMemory(std::uint64_t command);

  // --- The loss of an executor ---
  // The executor of the lease has gone, with `unanswered` commands and before it got the batch,
  // which is left empty. Calls that wait go on waiting.
  void Suspend(const std::deque<PendingReply>& unanswered, BatchWriter& batch);
  // An executor could not be reached: the daemon will tell of its end.
  void SuspendUnused();
  // Ends the waiting calls of lost executors with `error`.
  void FailUnanswered(cudaError_t error);
  // The session cannot be replayed: gives it a sticky error, tells the daemon and ends the waiting
  // calls. False, without effect, if the session has failed so before.
  bool Fail(const std::string& why);

  // --- The loss of torpord ---
  // Until NoteDaemonBack nothing can be told to a daemon, nor will one tell of an executor's end.
  void NoteDaemonGone();
  // Tells the next torpord if the session has failed.
  void NoteDaemonBack();
  bool daemon_is_gone() const { return daemon_is_gone_; }

  // --- The replay ---
  // Whether the executor of the grant is to be told by Replay. `obstacle` is left empty if the
  // session can be replayed.
  bool NeedsReplay(const wire::LeaseGrant& grant, std::string& obstacle);
  // Writes the objects as of the checkpoint into `batch`, and what the session has done since.
  // Calls `send`, which sends the batch over `link` without waiting, as often as necessary.
  void Replay(const ExecutorLinkPtr& link, BatchWriter& batch, const std::function<void()>& send);
  // Compares an answer of the replay with what the program has seen. Returns what differs; empty if
  // nothing does.
  std::string Compare(const wire::Reply& reply, std::uint64_t number) const;

  // --- Timers ---
  // When a checkpoint is due (in kHeld), or the daemon has told of no loss for too long
  // (kSuspended).
  std::optional<Time> NextTimer(ClientLease::State state) const;

 private:
  void TellObstacle();

  const ChannelOptions& options_;
  const ChannelParts& parts_;
  const ExecutorLinks& links_;
  ReplayRecord record_;
  Time recorded_since_;             // while the record has commands
  bool is_checkpoint_due_ = false;  // sent to the lease's executor, not answered yet
  AwaitedSaves saves_;
  std::string told_obstacle_;  // the last one in the log
  bool owes_work_ = false;
  std::optional<std::string> failure_;  // why Fail was called
  bool daemon_is_gone_ = false;
  int replays_ = 0;       // begun since a call or a drain was last answered
  Time suspended_since_;  // in State::kSuspended
  std::map<std::uint64_t, ReplyWaiter*> unanswered_;  // calls without an executor, by number
};

}  // namespace torpor::shim
