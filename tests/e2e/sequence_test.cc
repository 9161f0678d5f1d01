// A function whose state grows from request to request, wherever its memory is meanwhile.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "tests/e2e/emulated_node.h"
#include "tests/e2e/sequence_model.h"

namespace torpor::e2e {
namespace {

// Either GPU has room for one of the two functions, and their model for both of neither.
constexpr const char* kTwoGpus = R"(version: v1
gpus:
  - {memory: 32MiB, pcie_gbps: 4, count: 2}
)";

constexpr unsigned kTableKilobytes = 12 << 10;
constexpr TurnLimits kLimits{.block_kilobytes = 1024, .tokens = 200};

// How keys and values are kept: in one piece that is replaced by a larger one, or in pages.
class Sequence : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(node_.Start());
    ASSERT_NO_FATAL_FAILURE(node_.StartFunction("moved", shape_.Command()));
    ASSERT_NO_FATAL_FAILURE(node_.StartFunction("other", other_shape_.Command()));
  }
  void TearDown() override {
    if (HasFailure()) std::fputs(node_.Logs().c_str(), stderr);
  }

  void Ask(const std::string& function, const Turn& turn) {
    const Reply reply = node_.PostOne("/function/" + function + "/" + turn.path, turn.body);
    EXPECT_EQ(reply.status, 200) << reply.body;
    EXPECT_EQ(reply.body, turn.answer) << function << " " << turn.path << " " << turn.body;
    node_.WaitUntilIdle();
  }
  void AskForAnything(const std::string& function, SequenceModel& model) {
    Ask(function, RandomTurn(model, kLimits, random_));
  }

  nlohmann::json ResidentGpus() const { return node_.ResidentGpus("moved"); }

  const SequenceShape shape_{.seed = 7, .kilobytes = kTableKilobytes, .is_paged = GetParam()};
  const SequenceShape other_shape_{.seed = 8, .kilobytes = kTableKilobytes, .is_paged = true};
  SequenceModel moved_{shape_};
  SequenceModel other_{other_shape_};
  EmulatedNode node_{kTwoGpus, {"moved", "other"}};
  std::mt19937 random_{20261122};
};

TEST_P(Sequence, MovedOrEvictedBetweenAnyTwoRequestsItAnswersAsIfItHadStayed) {
  int gpu = 0;
  for (int round = 0; round < 20; ++round) {
    AskForAnything("moved", moved_);
    gpu = 1 - gpu;
    node_.Torporctl({"load", "moved", "--gpu", std::to_string(gpu)});
    const nlohmann::json there = ResidentGpus();
    EXPECT_EQ(std::count(there.begin(), there.end(), gpu), 1) << there;
    AskForAnything("moved", moved_);
    node_.Torporctl({"evict", "moved"});
    EXPECT_EQ(ResidentGpus(), nlohmann::json::array());
    AskForAnything("moved", moved_);
  }
  Ask("moved", BytesTurn(moved_));
}

TEST_P(Sequence, DrivenOutByOthersBetweenAnyTwoRequestsItAnswersAsIfItHadStayed) {
  for (int round = 0; round < 30; ++round) {
    AskForAnything("moved", moved_);
    const int gpu = ResidentGpus().at(0);
    node_.Torporctl({"load", "other", "--gpu", std::to_string(gpu)});
    EXPECT_EQ(ResidentGpus(), nlohmann::json::array());
    AskForAnything("other", other_);
  }
  Ask("moved", BytesTurn(moved_));
  Ask("other", BytesTurn(other_));
}

TEST_P(Sequence, CheckpointedItOutlivesItsExecutorsBetweenAnyTwoRequests) {
  for (int round = 0; round < 8; ++round) {
    for (int i = 0; i < 4; ++i) AskForAnything("moved", moved_);
    node_.Torporctl({"checkpoint", "moved"});
    const auto gpu = ResidentGpus().at(0).get<std::size_t>();
    const auto executor = node_.ExecutorOf(gpu);
    ASSERT_EQ(kill(executor, SIGKILL), 0);
    node_.WaitUntilKnownDead(gpu, executor);
  }
  AskForAnything("moved", moved_);
  Ask("moved", BytesTurn(moved_));
}

INSTANTIATE_TEST_SUITE_P(Caches, Sequence, testing::Bool(),
                         [](const auto& info) { return info.param ? "Pages" : "OnePiece"; });

}  // namespace
}  // namespace torpor::e2e
