#pragma once

#include <signal.h>
#include <sys/types.h>
#include <sys/wait.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/unique_fd.h"
#include "server/supervisor/process_record.h"

namespace torpor::server {

struct ProcessCommand {
  std::string program;
  std::vector<std::string> arguments;          // without the program's own name
  std::vector<std::string> added_environment;  // "NAME=value", over the daemon's own
  bool outlives_parent = false;                // else it dies with the thread that started it
  // Called with the new process before its program runs; may be null. If the parent dies before
  // this has returned, the program never runs.
  std::function<void(pid_t)> before_run{};
};

// A child process, or one of an earlier life of this program. Gets no terminal signals, and
// inherits no descriptor but standard error, which also takes its standard output. One that
// outlives its parent leads a session of its own.
class ChildProcess {
 public:
  // Fails if the program cannot be executed. `standard_output`: a descriptor for the output
  // instead.
  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(const ProcessCommand& command,
                                                             int standard_output = -1);
  // Takes over a process that an earlier life has started; null if the process has ended.
  static std::unique_ptr<ChildProcess> Adopt(const ProcessIdentity& process);
  // Takes a child that the caller has forked, and that leads, or soon will, a process group.
  static std::unique_ptr<ChildProcess> Of(pid_t forked);
  // Kills the process and waits for its end, unless Leave was called.
  ~ChildProcess();

  pid_t pid() const { return pid_; }
  // Becomes readable when the process ends.
  int descriptor() const { return pidfd_.get(); }
  // Sends the signal to the process and its group.
  void Signal(int number) const;
  void Kill() const { Signal(SIGKILL); }
  // Lets the process live on, if it outlives its parent.
  void Leave() { is_left_ = true; }

  // Whether the process has ended; `why` then describes the end for logs. What is left of its group
  // is killed: a successor may need the ports.
  bool HasEnded(std::string& why);
  // The signal that has ended the process; 0 if none has, or nobody knows.
  int end_signal() const { return WIFSIGNALED(status_) ? WTERMSIG(status_) : 0; }

 private:
  ChildProcess(pid_t pid, UniqueFd pidfd, bool is_adopted)
      : pid_(pid), pidfd_(std::move(pidfd)), is_adopted_(is_adopted) {}

  // Waits at most `timeout_ms` (-1: any time) for the end, and takes an own child's exit status.
  bool Await(int timeout_ms);

  const pid_t pid_;
  const UniqueFd pidfd_;
  const bool is_adopted_;  // somebody else gets the exit status
  bool has_ended_ = false;
  int status_ = 0;  // as waitpid's, of an own child that has ended
  bool is_left_ = false;
};

// Runs a program to its end and returns its standard output. Fails unless the program ends with
// status 0 within `timeout`.
absl::StatusOr<std::string> RunForOutput(const ProcessCommand& command, Duration timeout);

}  // namespace torpor::server
