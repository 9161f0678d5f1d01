// Executors with a spare, which takes over what is left of a GPU when the executor dies.
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdio>
#include <random>
#include <string>

#include "tests/e2e/await.h"
#include "tests/e2e/emulated_node.h"
#include "tests/e2e/sequence_model.h"

namespace torpor::e2e {
namespace {

constexpr const char* kTwoGpus = R"(version: v1
gpus:
  - {memory: 96MiB, pcie_gbps: 4, count: 2}
)";

constexpr TurnLimits kLimits{.block_kilobytes = 1024, .tokens = 200};

class Spare : public testing::Test {
 protected:
  // The processes of one GPU.
  struct Processes {
    pid_t executor = 0;
    pid_t spare = 0;
    pid_t pool_owner = 0;
  };

  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(node_.StartUnderInit());
    ASSERT_NO_FATAL_FAILURE(node_.StartFunction("f", shape_.Command()));
    AskSome();
  }
  void TearDown() override {
    if (HasFailure()) std::fputs(node_.Logs().c_str(), stderr);
  }

  // Each answer tells of all that the function has been sent.
  void AskSome() {
    for (int i = 0; i < 4; ++i) {
      const Turn turn = RandomTurn(model_, kLimits, random_);
      const Reply reply = node_.PostOne("/function/f/" + turn.path, turn.body);
      ASSERT_EQ(reply.status, 200) << reply.body;
      ASSERT_EQ(reply.body, turn.answer) << turn.path << " " << turn.body;
    }
  }
  Processes ProcessesOf(std::size_t gpu) const {
    const nlohmann::json status = node_.Status().at("gpus").at(gpu);
    return {status.at("executor_pid"), status.at("spare_pid"), status.at("pool_owner_pid")};
  }
  // Waits until the GPU is served and has a spare, other than the process `but`.
  Processes AwaitSpare(std::size_t gpu, pid_t but = 0) const {
    Processes processes;
    EXPECT_TRUE(Await("a spare executor", [&] {
                  processes = ProcessesOf(gpu);
                  return processes.executor != 0 && processes.spare != 0 && processes.spare != but;
                }).ok());
    return processes;
  }
  std::size_t GpuOfFunction() const { return node_.ResidentGpus("f").at(0).get<std::size_t>(); }
  nlohmann::json PoolOf(std::size_t gpu) const {
    return node_.Status().at("gpus").at(gpu).at("pool_bytes");
  }

  EmulatedNode node_{kTwoGpus, {"f"}, "spare_executor: true\n"};
  const SequenceShape shape_{.seed = 7, .kilobytes = 12 << 10, .is_paged = true};
  SequenceModel model_{shape_};
  std::mt19937 random_{20261128};
};

TEST_F(Spare, TakesOverFromADeadExecutor) {
  for (int round = 0; round < 4; ++round) {
    const std::size_t gpu = GpuOfFunction();
    const Processes before = AwaitSpare(gpu);
    const nlohmann::json pool = PoolOf(gpu);
    node_.WaitUntilIdle();
    ASSERT_EQ(kill(before.executor, SIGKILL), 0);
    node_.WaitUntilKnownDead(gpu, before.executor);
    AskSome();
    const Processes after = AwaitSpare(gpu);
    EXPECT_EQ(after.executor, before.spare);
    EXPECT_EQ(after.pool_owner, before.pool_owner);
    EXPECT_EQ(PoolOf(gpu), pool);
  }
}

TEST_F(Spare, ADeadSpareIsReplaced) {
  const std::size_t gpu = GpuOfFunction();
  const Processes before = AwaitSpare(gpu);
  ASSERT_EQ(kill(before.spare, SIGKILL), 0);
  EXPECT_EQ(AwaitSpare(gpu, before.spare).executor, before.executor);
  AskSome();
}

TEST_F(Spare, WithoutTheMemorysOwnerTheGpuStartsAnew) {
  const std::size_t gpu = GpuOfFunction();
  const Processes before = AwaitSpare(gpu);
  const nlohmann::json pool = PoolOf(gpu);
  ASSERT_EQ(kill(before.pool_owner, SIGKILL), 0);
  node_.WaitUntilKnownDead(gpu, before.executor);
  AskSome();
  const Processes after = AwaitSpare(gpu);
  EXPECT_NE(after.pool_owner, before.pool_owner);
  EXPECT_NE(after.executor, before.spare);
  EXPECT_EQ(PoolOf(gpu), pool) << "all of the memory came back";
}

TEST_F(Spare, AllThreeOutliveTorpord) {
  const std::size_t gpu = GpuOfFunction();
  const Processes before = AwaitSpare(gpu);
  node_.RestartTorpord();
  AskSome();
  const Processes after = AwaitSpare(gpu);
  EXPECT_EQ(after.executor, before.executor);
  EXPECT_EQ(after.spare, before.spare);
  EXPECT_EQ(after.pool_owner, before.pool_owner);
  // What was adopted takes over, too.
  ASSERT_EQ(kill(after.executor, SIGKILL), 0);
  node_.WaitUntilKnownDead(gpu, after.executor);
  AskSome();
  EXPECT_EQ(AwaitSpare(gpu).executor, before.spare);
}

TEST_F(Spare, TakesOverWhenTheNextTorpordHasCome) {
  const std::size_t gpu = GpuOfFunction();
  const Processes before = AwaitSpare(gpu);
  ASSERT_EQ(kill(before.executor, SIGKILL), 0);
  node_.RestartTorpord();
  AskSome();
  const Processes after = AwaitSpare(gpu);
  EXPECT_NE(after.executor, before.executor);
  EXPECT_EQ(after.pool_owner, before.pool_owner);
}

}  // namespace
}  // namespace torpor::e2e
