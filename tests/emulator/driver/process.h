#pragma once

#include <gtest/gtest.h>
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
    int status = -1;
    EXPECT_EQ(waitpid(child_, &status, 0), child_);
    EXPECT_EQ(status, 0) << "failures of the child are above";
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

 private:
  const pid_t child_;
};

}  // namespace torpor::emulator
