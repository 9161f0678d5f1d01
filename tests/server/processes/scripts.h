#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "base/unique_fd.h"
#include "server/processes/instance_command.h"
#include "tests/base/temporary_folder.h"

namespace torpor::server {

// Shell scripts as functions' processes, which speak through a pipe: `echo text > $PIPE`.
class ScriptTest : public testing::Test {
 protected:
  void SetUp() override {
    chmod(folder_.path().c_str(), 0755);
    ASSERT_EQ(mkfifo(pipe_path_.c_str(), 0600), 0);
    chmod(pipe_path_.c_str(), 0666);
    // Open for both: there is no end between two writers.
    pipe_ = UniqueFd(open(pipe_path_.c_str(), O_RDWR | O_CLOEXEC));
  }
  InstanceCommand Script(const std::string& script) const {
    return {.words = {"/bin/sh", "-c", script},
            .environment = {{"PIPE", pipe_path_}, {"PATH", "/usr/bin:/bin"}},
            .stop_grace = std::chrono::seconds(30)};
  }
  // The next line of any script.
  std::string Line() const {
    std::string line;
    for (;;) {
      pollfd ready = {pipe_.get(), POLLIN, 0};
      char c = 0;
      if (poll(&ready, 1, 30'000) != 1 || read(pipe_.get(), &c, 1) != 1) {
        ADD_FAILURE() << "no line, but " << line;
        return line;
      }
      if (c == '\n') return line;
      line += c;
    }
  }
  pid_t Number() const { return static_cast<pid_t>(std::atoi(Line().c_str())); }

  const TemporaryFolder folder_;
  const std::string pipe_path_ = folder_.path("pipe");
  UniqueFd pipe_;
};

}  // namespace torpor::server
