// Copies that stay on a GPU when another one fetches the image: a function whose state grows from
// request to request is asked on both GPUs, and answers as if it had been on one all the time.
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

// Three of the functions are more than a GPU's memory, less what is the driver's.
constexpr const char* kTwoGpus =
    "version: v1\ngpus: [{memory: 48MiB, pcie_gbps: 2, count: 2}]\n"
    "nvlinks: {gbps_per_link: 4, pairs: [{gpus: [0, 1]}]}\n";
constexpr unsigned kTableKilobytes = 12 << 10;
// Hops are by chance: the other function may have ended before.
constexpr int kAskedHops = 6;
constexpr int kMaxTries = 200;
constexpr TurnLimits kLimits{.block_kilobytes = 512, .tokens = 100};

class Replicas : public testing::Test {
 protected:
  explicit Replicas(const std::string& settings = "")
      : node_(kTwoGpus, {"copied", "other", "third"}, settings) {}

  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(node_.Start());
    for (const char* name : {"copied", "other", "third"}) {
      ASSERT_NO_FATAL_FAILURE(node_.StartFunction(name, shape_.Command()));
      Evict(name);
    }
  }
  void TearDown() override {
    if (HasFailure()) std::fputs(node_.Logs().c_str(), stderr);
  }

  Reply Ask(const Turn& turn) {
    Reply reply = node_.PostOne("/function/copied/" + turn.path, turn.body);
    EXPECT_EQ(reply.status, 200) << reply.body;
    EXPECT_EQ(reply.body, turn.answer) << turn.path << " " << turn.body;
    return reply;
  }
  Reply AskForAnything() {
    Reply reply = Ask(RandomTurn(model_, kLimits, random_));
    node_.WaitUntilIdle();
    return reply;
  }
  // Asks while the GPU works for another function.
  Reply AskBeside(int gpu) {
    // A sequence that is full would take no time, and little room would be left beside it.
    EXPECT_EQ(node_.PostOne("/function/other/reset", "{}").status, 200);
    Evict("other");
    Load("other", gpu);
    auto beside = std::async(std::launch::async, [this] {
      return node_.PostOne("/function/other/step", R"({"token":[1],"count":[200]})");
    });
    const auto is_leased = [&] {
      return node_.Status().at("gpus").at(gpu).at("leased_to") == "other" ||
             beside.wait_for(Duration::zero()) == std::future_status::ready;
    };
    EXPECT_EQ(Await("the other function runs", is_leased), absl::OkStatus());
    Reply reply = Ask(RandomTurn(model_, kLimits, random_));
    EXPECT_EQ(beside.get().status, 200);
    node_.WaitUntilIdle();
    return reply;
  }
  void Load(const std::string& function, int gpu) const {
    node_.Torporctl({"load", function, "--gpu", std::to_string(gpu)});
  }
  void Evict(const std::string& function) const {
    node_.WaitUntilIdle();
    node_.Torporctl({"evict", function});
  }
  void WaitUntilBothServe() const {
    const auto serve = [&] {
      const nlohmann::json gpus = node_.Status().at("gpus");
      return gpus.at(0).at("state") == "ready" && gpus.at(1).at("state") == "ready";
    };
    EXPECT_EQ(Await("both GPUs serve", serve), absl::OkStatus());
  }
  static int GpuOf(const Reply& reply) { return std::stoi(reply.headers.at("x-torpor-gpu")); }
  nlohmann::json ResidentGpus() const { return node_.ResidentGpus("copied"); }
  double BytesIn(const std::string& path) const {
    return ValueOf(node_.Metrics(), "torpor_swap_bytes_total",
                   {R"(direction="in")", "path=\"" + path + "\""});
  }
  double ReplicaBytes() const { return ValueOf(node_.Metrics(), "torpor_gpu_replica_bytes", {}); }

  const SequenceShape shape_{.seed = 7, .kilobytes = kTableKilobytes, .is_paged = true};
  SequenceModel model_{shape_};
  EmulatedNode node_;
  std::mt19937 random_{20261123};
};

TEST_F(Replicas, AnswerOnBothGpusWithoutASwapAndNeverFromStaleBytes) {
  AskForAnything();
  EXPECT_EQ(ReplicaBytes(), 0.0);
  Load("copied", 0);
  Load("copied", 1);
  ASSERT_EQ(ResidentGpus(), nlohmann::json::array({0, 1}));
  EXPECT_GE(ReplicaBytes(), 1024.0 * kTableKilobytes);
  int gpu = GpuOf(AskForAnything());
  const double from_peer = BytesIn("nvlink");
  int hops = 0;
  for (int tries = 0; hops < kAskedHops && tries < kMaxTries && !HasFailure(); ++tries) {
    const Reply reply = AskBeside(gpu);
    EXPECT_EQ(reply.headers.at("x-torpor-swap"), "resident");
    if (GpuOf(reply) != gpu) ++hops;
    gpu = GpuOf(AskForAnything());
  }
  EXPECT_EQ(hops, kAskedHops) << "in " << kMaxTries << " tries";
  EXPECT_EQ(ResidentGpus(), nlohmann::json::array({0, 1}));
  EXPECT_EQ(BytesIn("nvlink"), from_peer);
  Ask(BytesTurn(model_));
}

TEST_F(Replicas, OnlyWhatHasChangedFollows) {
  AskForAnything();
  Load("copied", 0);
  Load("copied", 1);
  int gpu = GpuOf(AskForAnything());
  double followed = 0;
  for (int tries = 0; tries < kAskedHops; ++tries) {
    const double before = BytesIn("pcie");
    gpu = GpuOf(AskBeside(gpu));
    followed += BytesIn("pcie") - before;
  }
  // The other function's image comes whole, each time.
  EXPECT_GE(followed, kAskedHops * 1024.0 * kTableKilobytes);
  EXPECT_LT(followed, kAskedHops * 1024.0 * kTableKilobytes * 1.8);
}

TEST_F(Replicas, AreEvictedFirst) {
  Load("other", 1);
  Load("copied", 0);
  Load("copied", 1);
  ASSERT_EQ(ResidentGpus(), nlohmann::json::array({0, 1}));
  // More than is free there.
  Load("third", 1);
  EXPECT_EQ(ResidentGpus(), nlohmann::json::array({0}));
  EXPECT_EQ(node_.ResidentGpus("other"), nlohmann::json::array({1}));
  EXPECT_EQ(node_.ResidentGpus("third"), nlohmann::json::array({1}));
  AskForAnything();
}

TEST_F(Replicas, OutliveTheExecutorOfTheOtherGpu) {
  for (int round = 0; round < 3; ++round) {
    Load("copied", 0);
    Load("copied", 1);
    const int gpu = GpuOf(AskForAnything());
    // Else the state is lost with the GPU, replica or not.
    node_.Torporctl({"checkpoint", "copied"});
    const pid_t executor = node_.ExecutorOf(static_cast<std::size_t>(gpu));
    ASSERT_EQ(kill(executor, SIGKILL), 0);
    node_.WaitUntilKnownDead(static_cast<std::size_t>(gpu), executor);
    AskForAnything();
    WaitUntilBothServe();
  }
  Ask(BytesTurn(model_));
}

class WithoutReplicas : public Replicas {
 protected:
  WithoutReplicas() : Replicas("keep_replicas: false\n") {}
};

TEST_F(WithoutReplicas, ImagesMove) {
  AskForAnything();
  Load("copied", 0);
  Load("copied", 1);
  EXPECT_EQ(ResidentGpus(), nlohmann::json::array({1}));
  AskForAnything();
}

}  // namespace
}  // namespace torpor::e2e
