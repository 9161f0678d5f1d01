#include "server/routing/router_keeper.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>

#include <thread>

#include "server/supervisor/process_record.h"
#include "tests/server/links/test_server.h"

namespace torpor::server {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class RouterKeeperTest : public testing::Test {
 protected:
  // A process that a shell script plays.
  RouterKeeper::Options Options(const std::string& script) {
    RouterKeeper::Options options;
    options.record_path = record_path();
    options.command = [script] {
      return ProcessCommand{.program = "/bin/sh",
                            .arguments = {"-c", script},
                            .added_environment = {},
                            .outlives_parent = true};
    };
    options.pauses.first = milliseconds(1);
    return options;
  }
  std::string record_path() const { return folder_.path("router.pid"); }

  // Waits until a process other than `known` is written down.
  ProcessIdentity AwaitRecord(const ProcessIdentity& known = {}) {
    while (true) {
      const auto record = ReadProcessRecord(record_path());
      if (record && record->process != known) return record->process;
      std::this_thread::yield();
    }
  }
  // Another process takes the place of `first`.
  void ExpectSuccessor(RouterKeeper& keeper, const ProcessIdentity& first) {
    EXPECT_NE(AwaitRecord(first).pid, first.pid);
    keeper.Stop({});
  }
  static bool HasEnded(const UniqueFd& process) {
    pollfd ended = {process.get(), POLLIN, 0};
    return poll(&ended, 1, 30'000) == 1;
  }

  const std::string kRuns = "exec sleep 1000";
  TemporaryFolder folder_;
};

TEST_F(RouterKeeperTest, AProcessIsStartedAndStopped) {
  RouterKeeper keeper(Options(kRuns));
  const ProcessIdentity process = AwaitRecord();
  EXPECT_TRUE(keeper.IsKept(process.pid));
  EXPECT_FALSE(keeper.IsKept(process.pid + 1));
  const UniqueFd descriptor = OpenProcess(process);
  keeper.OnAttached(process.pid);
  EXPECT_EQ(keeper.WaitUntilAttached(seconds(30)), absl::OkStatus());
  keeper.Stop(seconds(30));
  EXPECT_TRUE(HasEnded(descriptor));
  EXPECT_EQ(ReadProcessRecord(record_path()), std::nullopt);
}

TEST_F(RouterKeeperTest, AProcessThatDoesNotEndIsKilled) {
  RouterKeeper keeper(Options("trap '' TERM; exec sleep 1000"));
  const UniqueFd descriptor = OpenProcess(AwaitRecord());
  keeper.Stop(milliseconds(10));
  EXPECT_TRUE(HasEnded(descriptor));
}

TEST_F(RouterKeeperTest, ADeadProcessHasASuccessor) {
  RouterKeeper keeper(Options(kRuns));
  const ProcessIdentity first = AwaitRecord();
  keeper.OnAttached(first.pid);
  kill(first.pid, SIGKILL);
  const ProcessIdentity second = AwaitRecord(first);
  EXPECT_NE(second.pid, first.pid);
  keeper.Stop({});
}

TEST_F(RouterKeeperTest, AProcessThatNeverServesIsAFailure) {
  RouterKeeper keeper(Options("exit 1"));
  const absl::Status status = keeper.WaitUntilAttached(seconds(30));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
}

TEST_F(RouterKeeperTest, ALeftProcessIsTakenOver) {
  ProcessIdentity process;
  {
    RouterKeeper keeper(Options(kRuns));
    process = AwaitRecord();
  }
  RouterKeeper next(Options("exit 1"));
  EXPECT_TRUE(next.IsKept(process.pid));
  next.OnAttached(process.pid);
  EXPECT_EQ(next.WaitUntilAttached(seconds(30)), absl::OkStatus());
  next.Stop(seconds(30));
  EXPECT_FALSE(OpenProcess(process));
}

TEST_F(RouterKeeperTest, ALeftProcessThatDoesNotConnectIsReplaced) {
  ProcessIdentity left;
  {
    RouterKeeper keeper(Options(kRuns));
    left = AwaitRecord();
  }
  const UniqueFd descriptor = OpenProcess(left);
  RouterKeeper::Options options = Options(kRuns);
  options.adoption_patience = milliseconds(10);
  RouterKeeper next(options);
  EXPECT_TRUE(HasEnded(descriptor));
  EXPECT_NE(AwaitRecord(left).pid, left.pid);
  next.Stop({});
}

TEST_F(RouterKeeperTest, AStartedProcessThatDoesNotConnectIsReplaced) {
  RouterKeeper::Options options = Options(kRuns);
  options.start_patience = milliseconds(10);
  RouterKeeper keeper(options);
  const ProcessIdentity first = AwaitRecord();
  ExpectSuccessor(keeper, first);
}

TEST_F(RouterKeeperTest, AProcessThatIsSilentIsReplaced) {
  RouterKeeper::Options options = Options(kRuns);
  options.silence = milliseconds(50);
  RouterKeeper keeper(options);
  const ProcessIdentity first = AwaitRecord();
  keeper.OnAttached(first.pid);
  keeper.OnAlive(first.pid + 1);  // some other process's word
  keeper.OnAlive(first.pid);
  ExpectSuccessor(keeper, first);
}

TEST_F(RouterKeeperTest, AProcessThatHasNeverSpokenIsLeftAlone) {
  RouterKeeper::Options options = Options(kRuns);
  options.silence = milliseconds(1);
  RouterKeeper keeper(options);
  const ProcessIdentity process = AwaitRecord();
  keeper.OnAttached(process.pid);
  const UniqueFd descriptor = OpenProcess(process);
  pollfd ended = {descriptor.get(), POLLIN, 0};
  EXPECT_EQ(poll(&ended, 1, 50), 0) << "as a router of an earlier version";
  keeper.Stop({});
}

TEST_F(RouterKeeperTest, ARecordOfADeadProcessIsIgnored) {
  ASSERT_EQ(WriteProcessRecord(record_path(), {{.pid = 1 << 22, .start_ticks = 5}}),
            absl::OkStatus());
  RouterKeeper keeper(Options(kRuns));
  AwaitRecord({.pid = 1 << 22, .start_ticks = 5});
  keeper.Stop({});
}

}  // namespace
}  // namespace torpor::server
