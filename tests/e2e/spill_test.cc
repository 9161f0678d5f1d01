// Functions whose images do not fit into host memory together: some are on the disk at any time.
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdio>
#include <map>
#include <random>
#include <string>

#include "tests/e2e/emulated_node.h"
#include "tests/e2e/sequence_model.h"

namespace torpor::e2e {
namespace {

constexpr const char* kTwoGpus = R"(version: v1
gpus:
  - {memory: 48MiB, pcie_gbps: 4, count: 2}
)";

constexpr TurnLimits kLimits{.block_kilobytes = 1024, .tokens = 200};

class Spill : public testing::Test {
 protected:
  static constexpr int kFunctions = 4;

  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(node_.StartUnderInit());
    for (int i = 0; i < kFunctions; ++i) {
      const SequenceShape shape{
          .seed = static_cast<unsigned>(i), .kilobytes = 12 << 10, .is_paged = i % 2 == 0};
      models_.emplace(NameOf(i), shape);
      ASSERT_NO_FATAL_FAILURE(node_.StartFunction(NameOf(i), shape.Command()));
    }
  }
  void TearDown() override {
    if (HasFailure()) std::fputs(node_.Logs().c_str(), stderr);
  }

  static std::string NameOf(int i) { return "function-" + std::to_string(i); }
  void Ask(const std::string& function, const Turn& turn) {
    const Reply reply = node_.PostOne("/function/" + function + "/" + turn.path, turn.body);
    EXPECT_EQ(reply.status, 200) << reply.body;
    EXPECT_EQ(reply.body, turn.answer) << function << " " << turn.path << " " << turn.body;
  }
  // A request to each function, in any order.
  void AskAll() {
    for (auto& [function, model] : models_) Ask(function, RandomTurn(model, kLimits, random_));
  }
  nlohmann::json spills() const { return node_.Status().at("spills"); }

  EmulatedNode node_{kTwoGpus,
                     {NameOf(0), NameOf(1), NameOf(2), NameOf(3)},
                     "host_memory: 56MiB\nspill_limit: 1GiB\n"};
  std::map<std::string, SequenceModel> models_;
  std::mt19937 random_{20261128};
};

TEST_F(Spill, AllAreAnsweredAsIfTheirMemoryHadStayed) {
  for (int round = 0; round < 12; ++round) AskAll();
  for (auto& [function, model] : models_) Ask(function, BytesTurn(model));
  const nlohmann::json spills = this->spills();
  EXPECT_GT(spills.at("out").at("images"), 12);
  EXPECT_GT(spills.at("back").at("images"), 12);
  EXPECT_GE(spills.at("images"), 1) << "they do not fit together";
  EXPECT_EQ(spills.at("out").at("failures"), 0);
  EXPECT_EQ(spills.at("back").at("failures"), 0);
}

TEST_F(Spill, ExecutorsAndTorpordMayDieWhileImagesAreOnTheDisk) {
  for (int round = 0; round < 6; ++round) {
    AskAll();
    ASSERT_GE(spills().at("images"), 1);
    if (round % 2 == 0) {
      node_.RestartTorpord();
    } else {
      node_.WaitUntilIdle();
      const auto gpu = static_cast<std::size_t>(round / 2 % 2);
      const pid_t executor = node_.ExecutorOf(gpu);
      ASSERT_EQ(kill(executor, SIGKILL), 0);
      node_.WaitUntilKnownDead(gpu, executor);
    }
    AskAll();
  }
  EXPECT_EQ(spills().at("back").at("failures"), 0);
}

}  // namespace
}  // namespace torpor::e2e
