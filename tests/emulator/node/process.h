#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>

namespace torpor::emulator {

// A process of its own that runs `body` and whose EXPECTs count: make it before cuInit, which no
// child survives.
class Process {
 public:
  explicit Process(const std::function<void()>& body) : child_(fork()) {
    if (child_ != 0) return;
    body();
    std::_Exit(testing::Test::HasFailure() ? 1 : 0);
  }
  ~Process() {
    if (child_ == 0) return;
    int status = -1;
    EXPECT_EQ(waitpid(child_, &status, 0), child_);
    EXPECT_EQ(status, 0) << "failures of the child are above";
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // Returns when it is gone; it may have been in the middle of anything.
  void Kill() {
    kill(child_, SIGKILL);
    EXPECT_EQ(waitpid(child_, nullptr, 0), child_);
    child_ = 0;
  }

 private:
  pid_t child_;
};

// A channel of signals between processes.
class Pipe {
 public:
  Pipe() { EXPECT_EQ(pipe(ends_), 0); }
  ~Pipe() {
    close(ends_[0]);
    close(ends_[1]);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  void Send() const {
    const char byte = 0;
    EXPECT_EQ(write(ends_[1], &byte, 1), 1);
  }
  void Await() const {
    char byte = 0;
    EXPECT_EQ(read(ends_[0], &byte, 1), 1);
  }

 private:
  int ends_[2] = {-1, -1};
};

}  // namespace torpor::emulator
