// Executors that are killed in the middle of requests, and functions that lose nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "tests/e2e/await.h"
#include "tests/e2e/driven/chain_numbers.h"
#include "tests/e2e/emulated_node.h"
#include "tests/e2e/process_figures.h"

namespace torpor::e2e {
namespace {

using testing::HasSubstr;

class Replays : public testing::Test {
 protected:
  explicit Replays(const std::string& function_setting = "", const std::string& settings = "")
      : node_(kTwoSmallGpus, {"chain"}, settings, /*gpus=*/1, function_setting) {}
  void SetUp() override {
    node_.StartUnderInit();
    if (!HasFatalFailure()) {
      node_.StartFunction("chain", {std::string(DRIVEN_DIR) + "/chain_server"});
    }
  }
  void TearDown() override {
    if (HasFailure()) std::fputs(node_.Logs().c_str(), stderr);
  }

  Reply Post(const std::string& path, unsigned value, unsigned steps) const {
    return node_.PostOne(
        "/function/chain" + path,
        "{\"value\":[" + std::to_string(value) + "],\"steps\":[" + std::to_string(steps) + "]}");
  }
  // What the model answers to the next request.
  std::string Expected(unsigned value, unsigned steps) {
    for (unsigned step = 0; step < steps; ++step) {
      hash_ = hash_ * kChainFactor + value + value / 2 + step;
    }
    return Answer();
  }
  std::string ExpectedMapped(unsigned value) {
    hash_ = hash_ * kChainFactor + value + value;
    return Answer();
  }
  std::string Answer() const { return "{\"sum\":" + std::to_string(hash_) + "}\n"; }
  void Ask(unsigned value, unsigned steps) {
    const Reply reply = Post("/chain", value, steps);
    EXPECT_EQ(reply.status, 200) << reply.body;
    EXPECT_EQ(reply.body, Expected(value, steps));
  }

  // Kills the executor with the function's lease, once there is one; none if the request is over
  // before.
  void KillTheOneThatRuns(const std::atomic<bool>& is_over) {
    int gpu = -1;
    const auto runs = [&] {
      if (is_over) return true;
      const nlohmann::json status = node_.Status();
      for (const auto& one : status.at("gpus")) {
        if (one.at("leased_to") == "chain") gpu = one.at("gpu").get<int>();
      }
      return gpu >= 0;
    };
    ASSERT_EQ(Await("chain runs", runs), absl::OkStatus());
    if (gpu < 0) return;
    ++kills_;
    const pid_t executor = node_.ExecutorOf(static_cast<std::size_t>(gpu));
    ASSERT_EQ(kill(executor, SIGKILL), 0);
    node_.WaitUntilKnownDead(static_cast<std::size_t>(gpu), executor);
  }
  // Kills the executor that has the function's memory.
  void KillIdle() {
    node_.WaitUntilIdle();
    const auto gpu = node_.ResidentGpus("chain").at(0).get<std::size_t>();
    const pid_t executor = node_.ExecutorOf(gpu);
    ASSERT_EQ(kill(executor, SIGKILL), 0);
    node_.WaitUntilKnownDead(gpu, executor);
  }
  // A request during which the executor is killed.
  Reply PostAndKill(const std::string& path, unsigned value, unsigned steps) {
    Reply reply;
    std::atomic<bool> is_over = false;
    std::thread request([&] {
      reply = Post(path, value, steps);
      is_over = true;
    });
    KillTheOneThatRuns(is_over);
    request.join();
    return reply;
  }

  EmulatedNode node_;
  unsigned hash_ = kChainBegin;
  unsigned kills_ = 0;  // of executors that ran
};

// Long enough for a request to be killed in.
constexpr unsigned kLong = 6000;
constexpr unsigned kLongMs = 5000;

TEST_F(Replays, ARequestInFlightIsAnsweredAsIfNothingHadBeen) {
  Ask(1, 3);
  const Reply reply = PostAndKill("/chain", 5, kLong);
  EXPECT_EQ(kills_, 1u);
  EXPECT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(reply.body, Expected(5, kLong));
  Ask(6, 2);
}

TEST_F(Replays, NothingIsLostOverTwentyKills) {
  for (unsigned round = 0; round < 20; ++round) {
    Ask(round, 40);
    const Reply reply = PostAndKill("/chain", 100 + round, kLong / 2);
    ASSERT_EQ(reply.status, 200) << reply.body;
    ASSERT_EQ(reply.body, Expected(100 + round, kLong / 2));
    if (round % 3 == 0) node_.Torporctl({"checkpoint", "chain"});
  }
  EXPECT_GE(kills_, 10u) << "on a slow machine some come too late";
  Ask(1, 1);
}

TEST_F(Replays, WorkOfAnsweredRequestsIsReplayedForTheNext) {
  for (unsigned value = 1; value <= 3; ++value) Ask(value, 20);
  KillIdle();
  Ask(9, 5);
}

TEST_F(Replays, WhatCannotBeReplayedIsToldAndNeverForgotten) {
  Ask(1, 3);
  const Reply reply = PostAndKill("/mapped", 5, kLongMs);
  EXPECT_EQ(reply.status, 502) << reply.body;
  EXPECT_THAT(reply.body, HasSubstr("pinned or managed memory"));
  const Reply later = Post("/chain", 1, 1);
  EXPECT_NE(later.status, 200) << later.body;
}

class SmallRecord : public Replays {
 protected:
  SmallRecord() : Replays("", "idle_write_back: off\n") {}
  void SetUp() override {
    setenv("TORPOR_REPLAY_BYTES", "300000", 1);
    Replays::SetUp();
    unsetenv("TORPOR_REPLAY_BYTES");
  }
};

// Between requests, since an executor that dies while it writes leaves nothing to begin with.
TEST_F(SmallRecord, IsEmptiedByCheckpointsInTheMiddleOfRequests) {
  for (unsigned round = 0; round < 3; ++round) {
    Ask(5, kLong);
    Ask(6, 10);
    KillIdle();
    Ask(7, 10);
  }
}

class WithoutDurability : public Replays {
 protected:
  WithoutDurability() : Replays("durability: none") {}
};

TEST_F(WithoutDurability, ARequestInFlightIsLost) {
  Ask(1, 3);
  const Reply reply = PostAndKill("/chain", 5, kLong);
  EXPECT_EQ(reply.status, 502) << reply.body;
  EXPECT_EQ(Post("/chain", 1, 1).status, 200);
}

class SavedReplies : public Replays {
 protected:
  SavedReplies() : Replays("durability: request", "idle_write_back: off\n") {}

  void AskMapped(unsigned value) {
    const Reply reply = Post("/mapped", value, 0);
    EXPECT_EQ(reply.status, 200) << reply.body;
    EXPECT_EQ(reply.body, ExpectedMapped(value));
  }
};

TEST_F(SavedReplies, OutliveTheirExecutorWithoutAReplay) {
  Ask(1, 3);
  for (unsigned round = 0; round < 3; ++round) {
    AskMapped(10 + round);
    KillIdle();
    Ask(round, 5);
  }
}

TEST_F(SavedReplies, AreAnsweredWhenTheirExecutorDies) {
  for (unsigned round = 0; round < 10; ++round) {
    const Reply reply = PostAndKill("/chain", 100 + round, kLong / 2);
    ASSERT_EQ(reply.status, 200) << reply.body;
    ASSERT_EQ(reply.body, Expected(100 + round, kLong / 2));
    AskMapped(round);
  }
}

// Executors live on, and let go of all sessions when the next torpord comes.
TEST_F(SavedReplies, OutliveTorpord) {
  AskMapped(1);
  for (unsigned round = 0; round < 5; ++round) {
    Reply reply;
    std::thread request([&] { reply = Post("/chain", round, kLong / 2); });
    ASSERT_NO_FATAL_FAILURE(node_.RestartTorpord());
    request.join();
    ASSERT_EQ(reply.status, 200) << reply.body;
    ASSERT_EQ(reply.body, Expected(round, kLong / 2));
    AskMapped(round);
  }
}

TEST_F(SavedReplies, LeaveNothingBehindInTheExecutor) {
  for (unsigned value = 0; value < 20; ++value) Ask(value, 3);
  const auto gpu = node_.ResidentGpus("chain").at(0).get<std::size_t>();
  const pid_t executor = node_.ExecutorOf(gpu);
  const ProcessFigures before = FiguresOf(executor);
  for (unsigned value = 0; value < 200; ++value) Ask(value, 3);
  ASSERT_EQ(node_.ExecutorOf(gpu), executor);
  const ProcessFigures after = FiguresOf(executor);
  EXPECT_LE(after.threads, before.threads + 4);
  EXPECT_LE(after.descriptor_count(), before.descriptor_count() + 4) << after.DescriptorText();
}

}  // namespace
}  // namespace torpor::e2e
