#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace torpor::init {

// A program and what it gets of its service manager.
struct Program {
  std::vector<std::string> words;                  // looked for in PATH
  std::map<std::string, std::string> environment;  // beside ours
  std::function<void()> prepare;                   // called in the new process
};

// Starts the program, which gets standard input, output and error of this process, and `kept` by
// LISTEN_FDS, LISTEN_FDNAMES and LISTEN_PID, but no other descriptor. With a WATCHDOG_USEC goes a
// WATCHDOG_PID; none of these variables is inherited from this process. The program gets SIGTERM
// when this process dies. Fails with NotFound if there is no such program. Call from a process with
// one thread.
absl::StatusOr<pid_t> StartProgram(const Program& program,
                                   const std::map<std::string, UniqueFd>& kept);

}  // namespace torpor::init
