#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "client_shim/core/client_core.h"
#include "client_shim/core/commands/batch_rhythm.h"
#include "client_shim/core/commands/batch_writer.h"
#include "client_shim/core/commands/channel_parts.h"
#include "client_shim/core/commands/channel_replay.h"
#include "client_shim/core/commands/client_lease.h"
#include "client_shim/core/commands/journal.h"
#include "client_shim/core/commands/printed_output.h"
#include "client_shim/core/transport/executor_links.h"

namespace torpor::shim {

// Carries a session's commands to the executor of its lease: requests and returns leases, batches
// commands, opens streams to executors, tells them the journal and hands out replies. Thread-safe.
//
// One mutex guards the channel. A call holds the mutex for the microsecond that appending a command
// or handing a frame to the socket takes, never while the call waits. A thread that waits for a
// reply reads the executor's stream itself, on behalf of all waiting threads. The service thread
// does the rest: leases, timers, output that a socket did not take, replies that no thread waits
// for.
//
// Unless options say otherwise, a session outlives its executor: calls wait until another executor
// has the memory as last saved, and has done again what the session did since (ChannelReplay;
// channel_losses.cc).
class CommandChannel {
 public:
  using Time = std::chrono::steady_clock::time_point;

  CommandChannel(const ChannelOptions& options, const ChannelParts& parts);

  // As ClientCore's functions of the same names. Before each call that returns a cudaError_t the
  // caller has tested SessionHealth::Check.
  cudaError_t Enqueue(const Command& command);
  cudaError_t Call(const Command& command, CallReply& reply);
  void Flush();
  void Create(std::uint64_t handle, const Command& create);
  cudaError_t Configure(std::uint64_t handle, const Command& setting, std::uint64_t key);
  cudaError_t Destroy(std::uint64_t handle, const Command& destroy);
  bool IsLive(std::uint64_t handle) const;
  cudaError_t TakeAsyncError();
  bool IsDrained() const;
  std::uint64_t command_count() const { return uses_.load(std::memory_order_acquire); }
  // The fraction of the last second in which a lease was held, 0 to 1.
  double RecentShare() const;

  // --- Replays ---
  // Whether a replay may need memory that the program frees now.
  bool DefersFrees() const;
  // Has the memory saved, and waits.
  cudaError_t SaveMemory();
  // Begins to have the memory saved, if a lease is held.
  void BeginSavingMemory();
  // All of the session's memory is about to go: no replay needs what came before.
  void ForgetMemory();
  // The program has pinned memory there from now on.
  void NotePinned(std::uint64_t address, std::uint64_t bytes);
  // The session cannot be replayed from now on.
  void NoteLastingObstacle(const std::string& why);

  // The rest is for the service thread alone.

  // The daemon's messages about leases. OnGrant may take seconds to connect, without the mutex;
  // false if an executor serves the present lease, which breaks the protocol.
  bool OnGrant(const wire::LeaseGrant& grant);
  void OnRevoke(const wire::LeaseRevoke& revoke);
  void OnLost(const wire::LeaseLost& lost);
  // By the daemon's message no replay needs earlier commands.
  void OnSaved(const wire::MemorySaved& saved);
  // The daemon wants all that the session has done up to now in the host's image: OnTimers begins.
  void OnSaveMemory(const wire::SaveMemory& save);
  // torpord has gone, and its executors with it. The lease is over: its calls wait if the session
  // can be replayed, and fail otherwise. Calls that need another lease wait for the next torpord.
  void OnDaemonGone();
  // The next torpord knows the session.
  void OnResumed(const wire::ResumeReply& resumed);
  // Fails every waiting call. The caller has set the session's sticky error.
  void OnDaemonLost();

  struct Watched {
    ExecutorLinkPtr link;
    short events = 0;       // for poll
    bool is_ready = false;  // OnReady is due with these events, whatever poll says
  };
  // Appends the streams to poll. Returns when to call OnTimers next; nullopt if no timer runs.
  std::optional<Time> Watch(std::vector<Watched>& watched);
  // Reads from or writes to a stream with poll's `events`.
  void OnReady(const ExecutorLinkPtr& link, short events);
  // Flushes a batch that is due and returns an idle lease.
  void OnTimers();

 private:
  using Lock = std::unique_lock<std::mutex>;

  LeaseMoment Moment() const { return {std::chrono::steady_clock::now(), uses_}; }
  cudaError_t AwaitLease(Lock& lock, bool tells_program);
  cudaError_t AwaitRoom(Lock& lock, bool tells_program);
  void CarryOut(const LeaseActions& actions);
  void BeginReturn();
  void FlushInTime();
  void FlushFullBatch();
  void FlushBatch();
  void SendBatch(ExecutorLink& link);
  void Pump(const ExecutorLinkPtr& link);
  void Read(Lock& lock, const ExecutorLinkPtr& link, bool waits);
  void HandOverReading(ExecutorLink& link);
  void TakeReply(const ExecutorLinkPtr& link, wire::Reply reply, const PendingReply& answered);
  void NoteAsyncError(const wire::Reply& reply);
  void OnDrained(ExecutorLink& link, std::span<const std::uint8_t> result);
  void NoteEventTimes(ExecutorLink& link, const std::vector<wire::EventTime>& events);
  ExecutorLinkPtr FindOrOpenLink(Lock& lock, const wire::LeaseGrant& grant, std::string& why);
  void Introduce(ExecutorLink& link);
  void TellExecutor(const ExecutorLinkPtr& link);
  void TellChange(JournalChange::Kind kind, std::uint64_t handle, const Command& change,
                  std::uint64_t key);
  void NotifyAll();
  void BeginCheckpoint();
  void OnCheckpoint(ExecutorLink& link, const wire::Reply& reply);
  void Replay(const ExecutorLinkPtr& link);
  void OnReplayTimers(Time now);

  // --- channel_losses.cc ---
  void AwaitLastWords(Lock& lock, const ExecutorLinkPtr& link);
  void BreakLink(const ExecutorLinkPtr& link, cudaError_t error, const std::string& why);
  void Break(const ExecutorLinkPtr& link, cudaError_t error, const std::string& why);
  void Suspend(const ExecutorLinkPtr& link, const std::string& why);
  void EndSuspension();
  void FailReplay(const std::string& why);

  const ChannelOptions options_;
  const ChannelParts parts_;
  PrintedOutput printed_;
  std::atomic<std::uint64_t> uses_{0};  // counts every command

  mutable std::mutex mutex_;  // guards what follows
  ClientLease lease_;
  ExecutorLinkPtr lease_link_;  // null unless lease_.HasExecutor()
  std::condition_variable lease_changed_;
  std::condition_variable room_;  // a link took output
  ExecutorLinks links_;
  Journal journal_;
  BatchWriter batch_;            // empty unless lease_.HasExecutor()
  BatchRhythm rhythm_;           // unless options_ name a number of calls
  bool timer_is_armed_ = false;  // the service thread knows the batch's deadline
  cudaError_t async_error_ = cudaSuccess;
  ChannelReplay replay_{options_, parts_, links_};
};

}  // namespace torpor::shim
