#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"

namespace torpor::e2e {

// A program that a test has started; killed with its whole process group when the test ends.
// stdout and stderr go to files in `folder`. Failures of the system end the test's program.
class ChildProcess {
 public:
  struct Options {
    std::string folder;
    std::map<std::string, std::string> environment;  // added to ours
  };

  ChildProcess(const std::vector<std::string>& command, const Options& options);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  void Signal(int number) const;

  // The exit status, 128 and the signal's number for one that a signal killed, nothing if it
  // still runs after `patience`.
  std::optional<int> Wait(Duration patience);

  // The first line of stdout with `text` in it, as soon as it is complete. Empty when the program
  // ends, or `patience` passes, without it.
  std::string WaitForLine(const std::string& text, Duration patience);

  std::string Stdout() const;
  std::string Stderr() const;

 private:
  std::string stdout_path_;
  std::string stderr_path_;
  pid_t pid_ = -1;
  std::optional<int> status_;
};

// Runs build/bin/`program` until it ends, a minute at most; its output goes to files in `folder`.
std::unique_ptr<ChildProcess> RunToItsEnd(const std::string& program,
                                          const std::vector<std::string>& arguments,
                                          const std::string& folder);

// Returns the children of process `pid`, and their descendants.
std::vector<pid_t> DescendantsOf(pid_t pid);

// The name of the program that runs as `pid`, or empty.
std::string ProgramNameOf(pid_t pid);

// Whether the process, which need not be a child of ours, has ended before `patience` passes.
bool WaitUntilGone(pid_t pid, Duration patience);

}  // namespace torpor::e2e
