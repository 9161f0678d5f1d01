#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/unique_fd.h"

namespace torpor::server {

struct Command {
  std::string program;
  std::vector<std::string> arguments;          // without the program's own name
  std::vector<std::string> added_environment;  // "NAME=value", over the daemon's own
};

// A process of ours. It dies with the thread that started it, has no terminal signals, none of our
// descriptors but the standard error, and its standard output goes there.
class ChildProcess {
 public:
  // Fails where the program cannot be executed. `standard_output`: where its output goes instead.
  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(const Command& command,
                                                             int standard_output = -1);
  ~ChildProcess();  // kills it and waits for its end

  pid_t pid() const { return pid_; }
  // Becomes readable when the process ends.
  int descriptor() const { return pidfd_.get(); }
  void Kill() const;

  // Whether it has ended; `why` then says how, for logs.
  bool HasEnded(std::string& why);

 private:
  ChildProcess(pid_t pid, UniqueFd pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}

  const pid_t pid_;
  const UniqueFd pidfd_;
  bool is_reaped_ = false;
};

// Runs a program to its end and gives its standard output. Fails where it does not end with
// status 0 within `timeout`.
absl::StatusOr<std::string> RunForOutput(const Command& command, Duration timeout);

}  // namespace torpor::server
