#include "server/supervisor/process_record.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <fstream>

#include "server/supervisor/child_process.h"
#include "tests/server/links/test_server.h"

namespace torpor::server {
namespace {

TEST(ProcessRecord, AProcessIsFoundAgain) {
  const TemporaryFolder folder;
  const auto self = IdentityOf(getpid());
  ASSERT_TRUE(self);
  EXPECT_EQ(ReadProcessRecord(folder.path("record")), std::nullopt);
  for (const ProcessRecord& record : {ProcessRecord{*self}, ProcessRecord{*self, "abc"}}) {
    ASSERT_EQ(WriteProcessRecord(folder.path("record"), record), absl::OkStatus());
    EXPECT_EQ(ReadProcessRecord(folder.path("record")), record);
  }
  EXPECT_TRUE(OpenProcess(*self));
}

TEST(ProcessRecord, AnotherProcessOfTheSameNumberIsNotTheOne) {
  ProcessIdentity earlier = IdentityOf(getpid()).value();
  --earlier.start_ticks;
  EXPECT_FALSE(OpenProcess(earlier));
}

TEST(ProcessRecord, ADeadProcessIsGoneEvenWhileItsParentHasNotNoticed) {
  auto child = ChildProcess::Start({"/bin/sh", {"-c", "exit 0"}, {}}).value();
  const ProcessIdentity identity{.pid = child->pid()};
  pollfd ended = {child->descriptor(), POLLIN, 0};
  ASSERT_EQ(poll(&ended, 1, -1), 1);
  EXPECT_EQ(IdentityOf(identity.pid), std::nullopt);
  child.reset();
  EXPECT_EQ(IdentityOf(identity.pid), std::nullopt);
}

TEST(ProcessRecord, AProcessIsKilledAndIsGoneThen) {
  auto child = ChildProcess::Start({"/bin/sh", {"-c", "exec sleep 600"}, {}}).value();
  const ProcessIdentity identity = IdentityOf(child->pid()).value();
  ProcessIdentity earlier = identity;
  --earlier.start_ticks;
  EXPECT_TRUE(KillAndAwait(earlier, {})) << "it has gone long since";
  EXPECT_TRUE(IdentityOf(child->pid())) << "and the present one of its number lives";
  EXPECT_TRUE(KillAndAwait(identity, std::chrono::minutes(1)));
  EXPECT_FALSE(IdentityOf(child->pid()));
}

TEST(ProcessRecord, ABrokenRecordIsNone) {
  const TemporaryFolder folder;
  for (const char* text : {"", "12", "0 5", "-3 5", "x y"}) {
    std::ofstream(folder.path("record")) << text;
    EXPECT_EQ(ReadProcessRecord(folder.path("record")), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace torpor::server
