// Functions with equal weights, which host memory has once.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cstdio>
#include <map>
#include <random>
#include <string>

#include "proto/wire/descriptor_socket.h"
#include "tests/e2e/await.h"
#include "tests/e2e/emulated_node.h"
#include "tests/e2e/sequence_model.h"

namespace torpor::e2e {
namespace {

constexpr unsigned kWeights = 0;  // a block that comes from the host
constexpr unsigned kKilobytes = 12 << 10;
constexpr Bytes kBytes = kKilobytes * kKiB;

class BlockSharing : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(node_.StartUnderInit());
    for (const char* function : {"one", "two", "three"}) {
      const SequenceShape shape{.seed = static_cast<unsigned>(models_.size()), .kilobytes = 64};
      models_.emplace(function, shape);
      ASSERT_NO_FATAL_FAILURE(node_.StartFunction(function, shape.Command()));
    }
  }
  void TearDown() override {
    if (HasFailure()) std::fputs(node_.Logs().c_str(), stderr);
  }

  void Expect(const std::string& function, const std::string& path, const std::string& body,
              std::uint64_t sum) const {
    const Reply reply = node_.PostOne("/function/" + function + "/" + path, body);
    EXPECT_EQ(reply.status, 200) << reply.body;
    EXPECT_EQ(reply.body, "{\"sum\":" + std::to_string(sum) + "}\n") << function << " " << path;
  }
  // The function gets weights of this value, even.
  void Load(const std::string& function, unsigned value) {
    Expect(function, "allocate",
           "{\"block\":0,\"kilobytes\":" + std::to_string(kKilobytes) +
               ",\"value\":" + std::to_string(value) + "}",
           models_.at(function).Allocate(kWeights, kKilobytes, value));
  }
  void LoadAll(unsigned value) {
    for (const auto& [function, model] : models_) Load(function, value);
  }
  // Changes half of the function's weights.
  void Change(const std::string& function, unsigned value) {
    Expect(function, "change", "{\"block\":0,\"value\":" + std::to_string(value) + "}",
           models_.at(function).Change(kWeights, value));
  }
  // Its answer depends on all of the weights.
  void Step(const std::string& function) {
    Expect(function, "step", R"({"token":3,"count":1})", models_.at(function).Step(3, 1));
  }
  void StepAll() {
    for (const auto& [function, model] : models_) Step(function);
  }
  nlohmann::json sharing() const { return node_.Status().at("sharing"); }
  // `used`: but for two blocks of each function, which an allocation has in part.
  void AwaitShared(Bytes used) const {
    const auto is_shared = [&] {
      const Bytes now = sharing().at("used_bytes");
      return now <= used && now + kEdges * models_.size() >= used;
    };
    EXPECT_EQ(Await("equal blocks are shared", is_shared), absl::OkStatus())
        << node_.Status().dump();
  }
  // Until something is shared that was not, or no longer.
  void AwaitLook() const {
    const nlohmann::json before = sharing();
    // Perhaps no two functions have equal blocks now.
    (void)Await(
        "other blocks are shared", [&] { return sharing() != before; }, std::chrono::seconds(2));
  }
  void KillExecutor(std::size_t gpu) const {
    const pid_t executor = node_.ExecutorOf(gpu);
    ASSERT_EQ(kill(executor, SIGKILL), 0);
    node_.WaitUntilKnownDead(gpu, executor);
  }
  Bytes stored() const { return sharing().at("stored_bytes"); }
  static constexpr Bytes kEdges = 2 * wire::kImageBlockBytes;

  EmulatedNode node_{"version: v1\ngpus:\n  - {memory: 64MiB, pcie_gbps: 4, count: 2}\n",
                     {"one", "two", "three"},
                     "share_equal_blocks: 100ms\nidle_write_back: 50ms\n"};
  std::map<std::string, SequenceModel> models_;
};

TEST_F(BlockSharing, EqualWeightsAreStoredOnceAndServe) {
  LoadAll(2);
  const Bytes before = node_.Status().at("host_image_bytes");
  AwaitShared(3 * kBytes);
  EXPECT_LE(stored(), kBytes);
  const Bytes after = node_.Status().at("host_image_bytes");
  EXPECT_LE(after + 2 * kBytes, before + kMiB) << "but for blocks in part, and states";
  // More than the GPUs hold: images come and go.
  for (int round = 0; round < 4; ++round) StepAll();
}

TEST_F(BlockSharing, AFunctionThatChangesItsWeightsChangesNoOthers) {
  LoadAll(2);
  AwaitShared(3 * kBytes);
  Change("one", 5);
  for (int round = 0; round < 3; ++round) StepAll();
  // Half of the block has changed.
  AwaitShared(3 * kBytes - kBytes / 2);
  LoadAll(4);
  StepAll();
  AwaitShared(3 * kBytes);
  EXPECT_LE(stored(), kBytes + kBytes) << "and what is about to go";
}

TEST_F(BlockSharing, ExecutorsAndTorpordMayDie) {
  LoadAll(2);
  AwaitShared(3 * kBytes);
  for (int round = 0; round < 2; ++round) {
    node_.RestartTorpord();
    StepAll();
    AwaitShared(3 * kBytes);
    for (const std::size_t gpu : {0, 1}) {
      node_.WaitUntilIdle();
      KillExecutor(gpu);
    }
    StepAll();
  }
  node_.StopFunction("one");
  models_.erase("one");
  AwaitShared(2 * kBytes);
  StepAll();
}

TEST_F(BlockSharing, WhateverChangesAndWhoeverDiesEveryAnswerIsRight) {
  std::mt19937 random{20261129};
  const auto up_to = [&](int most) { return std::uniform_int_distribution<>(0, most)(random); };
  for (int round = 0; round < 40 && !HasFailure(); ++round) {
    for (const auto& [function, model] : models_) {
      const int kind = up_to(5);
      if (kind == 0) Load(function, up_to(1) == 0 ? 2 : 4);
      if (kind == 1) Change(function, 1 + static_cast<unsigned>(up_to(8)));
      Step(function);
    }
    if (round % 10 == 5) node_.RestartTorpord();
    if (round % 10 == 9) {
      node_.WaitUntilIdle();
      KillExecutor(static_cast<std::size_t>(up_to(1)));
    }
    // Some rounds find blocks that have been shared meanwhile.
    if (round % 4 == 0) AwaitLook();
  }
}

}  // namespace
}  // namespace torpor::e2e
