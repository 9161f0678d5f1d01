#include "server/controller/model/executor_table.h"

#include "tests/server/controller/node_world.h"

namespace torpor::server {
namespace {

class ExecutorTableTest : public NodeWorld {
 protected:
  static v1::DaemonMessage Ping() {
    v1::DaemonMessage message;
    message.mutable_ping();
    return message;
  }
};

TEST_F(ExecutorTableTest, AStreamIsItsExecutorsUntilThatIsDetached) {
  EXPECT_EQ(tables_.executors.OfLink(links_[1]), &tables_.executors.At(GpuIndex{1}));
  KillExecutor(1);
  EXPECT_EQ(tables_.executors.OfLink(links_[1]), nullptr);
  EXPECT_EQ(tables_.executors.OfLink(std::make_shared<FakeExecutorLink>()), nullptr);
  EXPECT_EQ(tables_.executors.Find(GpuIndex{2}), nullptr);
}

TEST_F(ExecutorTableTest, AnOperationOfAnAbsentExecutorIsLostButNotFromInside) {
  KillExecutor(0);
  bool is_lost = false;
  tables_.executors.Run({GpuIndex{0}, {}}, Ping(),
                        [&](const OperationResult& result) { is_lost = result.is_executor_lost; });
  EXPECT_FALSE(is_lost);
  loop_.RunAll();
  EXPECT_TRUE(is_lost);
}

TEST_F(ExecutorTableTest, AsksAllAndGivesTheFirstFailure) {
  std::optional<absl::Status> outcome;
  tables_.executors.RunOnAll(DomainId(), Ping(),
                             [&](const absl::Status& status) { outcome = status; });
  Answer(1, absl::InternalError("no"));
  EXPECT_FALSE(outcome);
  Answer(0);
  EXPECT_EQ(outcome, absl::InternalError("no"));
}

TEST_F(ExecutorTableTest, ADeadExecutorIsNoFailureForAll) {
  std::optional<absl::Status> outcome;
  tables_.executors.RunOnAll(DomainId(), Ping(),
                             [&](const absl::Status& status) { outcome = status; });
  Answer(0);
  KillExecutor(1);
  EXPECT_EQ(outcome, absl::OkStatus());
}

TEST_F(ExecutorTableTest, KillsAndAwaitsTheLoss) {
  bool is_gone = false;
  tables_.executors.KillAndAwait({GpuIndex{1}, {}}, "a test",
                                 [&](const OperationResult&) { is_gone = true; });
  EXPECT_EQ(processes_.killed, std::vector{GpuIndex{1}});
  EXPECT_FALSE(is_gone);
  KillExecutor(1);
  EXPECT_TRUE(is_gone);
}

TEST_F(ExecutorTableTest, KillsWhoOwesAnAnswerForTooLong) {
  tables_.executors.Run({GpuIndex{0}, {}}, Ping(), [](const OperationResult&) {});
  loop_.Advance(std::chrono::seconds(5));
  tables_.executors.KillHanging(std::chrono::seconds(5));
  EXPECT_TRUE(processes_.killed.empty());
  tables_.executors.KillHanging(std::chrono::seconds(4));
  EXPECT_EQ(processes_.killed, std::vector{GpuIndex{0}});
}

TEST_F(ExecutorTableTest, KnowsWhatItsExecutorsOffer) {
  EXPECT_TRUE(tables_.executors.IsAnyReady());
  EXPECT_EQ(tables_.executors.LargestPool(kChunk), kPool);
  EXPECT_EQ(tables_.executors.LargestPool(48 * kMiB), 48 * kMiB);
  EXPECT_TRUE(tables_.executors.HasPeerAccess());
  KillExecutor(0);
  v1::ExecutorMessage::Register alone;
  alone.set_pool_bytes(kPool);
  tables_.executors.Attach(tables_.executors.At(GpuIndex{0}), links_[0], alone);
  EXPECT_FALSE(tables_.executors.HasPeerAccess());
}

}  // namespace
}  // namespace torpor::server
