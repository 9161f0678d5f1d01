#include "server/supervisor/child_process.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "server/supervisor/pipe.h"
#include "tests/base/temporary_folder.h"

namespace torpor::server {
namespace {

TEST(ChildProcessTest, AProgramRunsOnceItsParentIsDoneWithIt) {
  const TemporaryFolder folder;
  const std::string record = folder.path("record");
  pid_t told = 0;
  const auto child = ChildProcess::Start({.program = "/usr/bin/test",
                                          .arguments = {"-e", record},
                                          .added_environment = {},
                                          .before_run =
                                              [&](pid_t pid) {
                                                told = pid;
                                                folder.Write("record", "");
                                              }})
                         .value();
  EXPECT_EQ(told, child->pid());
  pollfd ended = {child->descriptor(), POLLIN, 0};
  ASSERT_EQ(poll(&ended, 1, 30'000), 1);
  std::string why;
  ASSERT_TRUE(child->HasEnded(why));
  EXPECT_EQ(why, "exit status 0");
}

TEST(ChildProcessTest, AProgramNeverRunsIfItsParentDiesBefore) {
  Pipe output = OpenPipe().value();
  const pid_t parent = fork();
  ASSERT_GE(parent, 0);
  if (parent == 0) {
    (void)ChildProcess::Start({.program = "/bin/echo",
                               .arguments = {"it runs"},
                               .added_environment = {},
                               .outlives_parent = true,
                               .before_run = [](pid_t) { _exit(0); }},
                              output.writer.get());
    _exit(1);
  }
  output.writer.Reset();
  int status = -1;
  ASSERT_EQ(waitpid(parent, &status, 0), parent);
  EXPECT_EQ(status, 0);
  char word = 0;
  EXPECT_EQ(read(output.reader.get(), &word, 1), 0) << "the end of all that have the pipe";
}

}  // namespace
}  // namespace torpor::server
