// A function whose state grows from request to request, and whose memory moves between GPUs over
// the NVLink between them.
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdio>
#include <future>
#include <random>
#include <string>
#include <vector>

#include "tests/e2e/await.h"
#include "tests/e2e/emulated_node.h"
#include "tests/e2e/metrics_page.h"
#include "tests/e2e/sequence_model.h"

namespace torpor::e2e {
namespace {

// The rates are GB/s.
std::string TwoGpus(const std::string& pcie, const std::string& nvlink) {
  return "version: v1\ngpus: [{memory: 64MiB, pcie_gbps: " + pcie +
         ", count: 2}]\nnvlinks: {gbps_per_link: " + nvlink + ", pairs: [{gpus: [0, 1]}]}\n";
}

constexpr unsigned kTableKilobytes = 12 << 10;
// Of moves for a request: which of two requests comes first is not decided here.
constexpr int kAskedMoves = 3;
constexpr int kMaxTries = 60;
constexpr TurnLimits kLimits{.block_kilobytes = 1024, .tokens = 200};

class Moves : public testing::Test {
 protected:
  // Copies that stay are replicas_test's.
  explicit Moves(const std::string& topology = TwoGpus("2", "4"), const std::string& settings = "")
      : node_(topology, {"moved", "other"}, settings + "keep_replicas: false\n") {}

  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(node_.Start());
    ASSERT_NO_FATAL_FAILURE(node_.StartFunction("moved", shape_.Command()));
  }
  void TearDown() override {
    if (HasFailure()) std::fputs(node_.Logs().c_str(), stderr);
  }

  Reply Ask(const Turn& turn) {
    Reply reply = node_.PostOne("/function/moved/" + turn.path, turn.body);
    EXPECT_EQ(reply.status, 200) << reply.body;
    EXPECT_EQ(reply.body, turn.answer) << turn.path << " " << turn.body;
    node_.WaitUntilIdle();
    return reply;
  }
  Reply AskForAnything() { return Ask(RandomTurn(model_, kLimits, random_)); }
  void LoadTo(int gpu) const {
    node_.Torporctl({"load", "moved", "--gpu", std::to_string(gpu)});
    EXPECT_EQ(ResidentGpus(), nlohmann::json::array({gpu}));
  }

  nlohmann::json ResidentGpus() const { return node_.ResidentGpus("moved"); }
  // Bytes that came to a GPU over `path`.
  double BytesIn(const std::string& path) const {
    return ValueOf(node_.Metrics(), "torpor_swap_bytes_total",
                   {R"(direction="in")", "path=\"" + path + "\""});
  }

  const SequenceShape shape_{.seed = 7, .kilobytes = kTableKilobytes, .is_paged = true};
  SequenceModel model_{shape_};
  EmulatedNode node_;
  std::mt19937 random_{20261122};
};

TEST_F(Moves, AFunctionMovedOverALinkAnswersAsIfItHadStayed) {
  AskForAnything();
  LoadTo(0);
  const double from_host = BytesIn("pcie");
  for (int round = 0; round < 10; ++round) {
    AskForAnything();
    LoadTo(1);
    AskForAnything();
    AskForAnything();
    LoadTo(0);
  }
  Ask(BytesTurn(model_));
  EXPECT_GE(BytesIn("nvlink"), 20.0 * 1024 * kTableKilobytes);
  EXPECT_EQ(BytesIn("pcie"), from_host);
}

TEST_F(Moves, ARequestWhoseGpuIsAnothersMovesItsFunction) {
  ASSERT_NO_FATAL_FAILURE(node_.StartFunction("other", shape_.Command()));
  AskForAnything();
  int moves = 0;
  for (int tries = 0; moves < kAskedMoves && tries < kMaxTries && !HasFailure(); ++tries) {
    const int gpu = ResidentGpus().at(0);
    node_.Torporctl({"load", "other", "--gpu", std::to_string(gpu)});
    const Turn turn = RandomTurn(model_, kLimits, random_);
    const std::vector<Reply> replies =
        node_.PostAll({{"/function/other/step", R"({"token":[1],"count":[150]})"},
                       {"/function/moved/" + turn.path, turn.body}});
    EXPECT_EQ(replies[0].status, 200) << replies[0].body;
    EXPECT_EQ(replies[1].body, turn.answer) << turn.path << " " << turn.body;
    // Or it was first; then nobody had to move.
    if (replies[1].headers.at("x-torpor-swap") == "peer") ++moves;
    node_.WaitUntilIdle();
  }
  EXPECT_EQ(moves, kAskedMoves) << "in " << kMaxTries << " tries";
  Ask(BytesTurn(model_));
}

// 12 MiB take over half a second.
class SlowMoves : public Moves {
 protected:
  SlowMoves() : Moves(TwoGpus("0.016", "0.02")) {}

  // It counts as being there from the moment in which all copies are enqueued.
  void WaitUntilOnItsWayTo(int gpu) const {
    const auto is_on_its_way = [&] { return ResidentGpus() == nlohmann::json::array({gpu}); };
    ASSERT_EQ(Await("the function is on its way", is_on_its_way), absl::OkStatus());
  }
  // What is copied keeps its memory until it has arrived.
  bool IsStillCopiedFrom(int gpu) const {
    return node_.Status().at("gpus").at(gpu).at("used_bytes") > 0;
  }
};

TEST_F(SlowMoves, ASourceThatIsKilledMeanwhileIsNotMissed) {
  AskForAnything();
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < 3; ++i) AskForAnything();
    node_.Torporctl({"checkpoint", "moved"});
    const int from = ResidentGpus().at(0);
    const pid_t executor = node_.ExecutorOf(static_cast<std::size_t>(from));
    auto load = std::async(std::launch::async, [this, from] { LoadTo(1 - from); });
    ASSERT_NO_FATAL_FAILURE(WaitUntilOnItsWayTo(1 - from));
    ASSERT_TRUE(IsStillCopiedFrom(from));
    ASSERT_EQ(kill(executor, SIGKILL), 0);
    EXPECT_NE(load.wait_for(Duration::zero()), std::future_status::ready);
    node_.WaitUntilKnownDead(static_cast<std::size_t>(from), executor);
    load.get();
    AskForAnything();
  }
  Ask(BytesTurn(model_));
}

class MovesByWayOfTheHost : public Moves {
 protected:
  MovesByWayOfTheHost() : Moves(TwoGpus("2", "4"), "swap_from_peers: false\n") {}
};

TEST_F(MovesByWayOfTheHost, AreASetting) {
  AskForAnything();
  LoadTo(0);
  LoadTo(1);
  AskForAnything();
  EXPECT_EQ(BytesIn("nvlink"), 0.0);
}

}  // namespace
}  // namespace torpor::e2e
