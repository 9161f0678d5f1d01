#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "server/init/kept_descriptors.h"
#include "server/init/notify_socket.h"
#include "server/init/program.h"
#include "server/init/restart_policy.h"
#include "server/init/signal_source.h"

namespace torpor::init {

// Runs a program as its service manager and as the init of its processes: starts the program again
// when it ends, keeps descriptors for it over its ends, passes signals on, and reaps orphans. One
// may exist in a process, which must have no other thread and no other children.
class Init {
 public:
  struct Options {
    std::vector<std::string> program;
    std::size_t store_max = 4096;
    // The program is killed when it has not said WATCHDOG=1 for so long; zero: never.
    Duration watchdog{};
    // How long processes that the program leaves behind get to end, after SIGTERM.
    Duration grace{std::chrono::seconds(10)};
    // A run counts only if the program came to serve in it.
    server::RestartPauses::Options pauses{.healthy_after = std::chrono::milliseconds(500)};
  };

  // Raises this process's limit of descriptors, and keeps fewer than store_max if that is too low.
  static absl::StatusOr<std::unique_ptr<Init>> Create(Options options);

  // Runs the program until it ends for good and leaves no process behind. Returns the exit status,
  // 128 and the signal's number after a death by a signal. Call once.
  int Run();

 private:
  Init(Options options, const rlimit& program_limit, std::size_t capacity, NotifySocket socket);

  bool is_running() const { return program_pid_ != 0; }
  void StartDue();
  void Start();
  void OnEnd(int exit_status);
  // Waits for a signal, a message or the next thing that is due.
  void Wait(TimePoint until);
  TimePoint NextDue() const;

  void ReceiveMessages();
  void OnMessage(NotifySocket::Datagram datagram);
  void KeepDescriptors(const std::string& name, NotifySocket::Datagram datagram);
  void HandleSignals();
  void PassOn(int number, bool is_of_terminal);
  // Notes the end of the program and reaps all others that have ended.
  void Reap();
  void CheckWatchdog();
  void FeedManager();

  // Ends the processes that the program has left behind.
  void EndOrphans();
  bool HasChildren();

  const Options options_;
  const rlimit program_limit_;                   // of descriptors
  const std::optional<Duration> feed_interval_;  // of this process's own manager
  SteadyClock clock_;
  SignalSource signals_;
  NotifySocket socket_;
  KeptDescriptors kept_;
  RestartPolicy policy_;

  pid_t program_pid_ = 0;  // 0 while none runs
  TimePoint started_;
  TimePoint next_start_;
  TimePoint watchdog_at_ = TimePoint::max();  // when the program is killed
  TimePoint feed_at_ = TimePoint::max();
  int last_status_ = 0;
  std::optional<int> exit_status_;  // once the program has ended for good
};

}  // namespace torpor::init
