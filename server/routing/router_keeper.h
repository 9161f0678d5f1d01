#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/unique_fd.h"
#include "server/supervisor/child_process.h"
#include "server/supervisor/process_record.h"
#include "server/supervisor/restart_pauses.h"

namespace torpor::server {

// Keeps the router's process alive: takes over the one that an earlier torpord has left, starts one
// where there is none, and starts another when it has ended, at once the first time, then after
// ever longer pauses. Kills a process that hangs. Thread-safe.
class RouterKeeper {
 public:
  struct Options {
    std::string record_path;  // where the process is written down for the next torpord
    std::function<ProcessCommand()> command;
    // A process that was left, or started, and has not connected by then is killed.
    Duration adoption_patience{std::chrono::seconds(2)};
    Duration start_patience{std::chrono::seconds(10)};
    // A process that has said that it turns, and then nothing for so long, is killed, a fifth
    // later: torpord may have been stopped itself.
    Duration silence{std::chrono::seconds(10)};
    // A start takes 20 ms, and without a router the node serves nobody.
    RestartPauses::Options pauses{.longest = std::chrono::seconds(1)};
  };

  explicit RouterKeeper(Options options);
  ~RouterKeeper();  // Leave, unless Stop came first

  // Whether `pid` is the kept process.
  bool IsKept(pid_t pid);
  // The kept process has connected, and is welcome.
  void OnAttached(pid_t pid);
  // The process has told that its loop turns. Expected twice a second from the first time on.
  void OnAlive(pid_t pid);
  // Waits until the process has connected. Unavailable if several in a row have ended before, or
  // after `patience`.
  absl::Status WaitUntilAttached(Duration patience);

  // Ends the process by SIGTERM, which lets it end its requests, or by force after `patience`.
  // Idempotent.
  void Stop(Duration patience);
  // Leaves the process to the next torpord. Idempotent.
  void Leave();

 private:
  // Ends of quick starts in a row after which the start counts as failed.
  static constexpr int kMaxFailures = 3;

  void Run();
  void Wait();
  void StartDue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // For the next torpord.
  void WriteDown(pid_t pid) const;
  void Adopt() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoteEnd() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The process has not been heard of in time.
  void NoteSilence() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndThread();

  const Options options_;
  const SteadyClock clock_;
  const UniqueFd wake_;
  Mutex mutex_;
  absl::CondVar changed_;
  std::unique_ptr<ChildProcess> process_ ABSL_GUARDED_BY(mutex_);  // null while there is none
  bool is_attached_ ABSL_GUARDED_BY(mutex_) = false;
  TimePoint started_ ABSL_GUARDED_BY(mutex_);
  TimePoint next_start_ ABSL_GUARDED_BY(mutex_);
  RestartPauses pauses_ ABSL_GUARDED_BY(mutex_);
  enum class Phase { kKeeping, kStopping, kLeft } phase_ ABSL_GUARDED_BY(mutex_) = Phase::kKeeping;
  TimePoint kill_at_ ABSL_GUARDED_BY(mutex_) = TimePoint::max();
  TimePoint silent_at_ ABSL_GUARDED_BY(mutex_) = TimePoint::max();  // max: never heard of
  bool is_doubted_ ABSL_GUARDED_BY(mutex_) = false;                 // has been silent once
  std::thread thread_;
};

}  // namespace torpor::server
