// Functions that outlive torpord: it is killed under load, and nothing is lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <cstdio>
#include <string>
#include <thread>

#include "tests/e2e/await.h"
#include "tests/e2e/driven/chain_numbers.h"
#include "tests/e2e/emulated_node.h"
#include "tests/e2e/metrics_page.h"

namespace torpor::e2e {
namespace {

constexpr const char* kTwoGpus = R"(version: v1
gpus:
  - memory: 96MiB
    count: 2
)";

// Long enough for a request to be killed in.
constexpr unsigned kLong = 2000;
constexpr unsigned kStateElements = 16u << 18;  // of a state_server

// The function `chain`, whose answers depend on all requests so far, and `idle`, which keeps a sum.
class Successors : public testing::Test {
 protected:
  explicit Successors(const std::string& settings = "")
      : node_(kTwoGpus, {"chain", "idle"}, settings) {}
  void SetUp() override {
    node_.StartUnderInit();
    if (HasFatalFailure()) return;
    node_.StartFunction("chain", {std::string(DRIVEN_DIR) + "/chain_server"});
    if (HasFatalFailure()) return;
    node_.StartFunction("idle", {std::string(DRIVEN_DIR) + "/state_server"});
  }
  void TearDown() override {
    if (HasFailure()) std::fputs(node_.Logs().c_str(), stderr);
  }

  // A request, and what the model of the function answers.
  void Ask(unsigned value, unsigned steps) {
    const Reply reply = node_.PostOne("/function/chain/chain",
                                      "{\"value\":[" + std::to_string(value) + "],\"steps\":[" +
                                          std::to_string(steps) + "]}");
    for (unsigned step = 0; step < steps; ++step) {
      hash_ = hash_ * kChainFactor + value + value / 2 + step;
    }
    ASSERT_EQ(reply.status, 200) << reply.body;
    ASSERT_EQ(reply.body, "{\"sum\":" + std::to_string(hash_) + "}\n");
  }
  void Add(unsigned value) {
    sum_ += value;
    const Reply reply =
        node_.PostOne("/function/idle/add", "{\"value\":[" + std::to_string(value) + "]}");
    EXPECT_EQ(reply.status, 200) << reply.body;
    EXPECT_EQ(reply.body,
              "{\"sum\":" + std::to_string(std::uint64_t{sum_} * kStateElements) + "}\n");
  }
  // Whether neither function's process has ended.
  bool AllLive() {
    return !node_.function("chain").Wait(Duration::zero()) &&
           !node_.function("idle").Wait(Duration::zero());
  }
  double Outlived(const std::string& fate) const {
    return ValueOf(node_.Metrics(), "torpor_sessions_outlived_total", {"fate=\"" + fate + "\""});
  }

  EmulatedNode node_;
  unsigned hash_ = kChainBegin;
  unsigned sum_ = 0;
};

TEST_F(Successors, NothingIsLostOverTenKillsUnderLoad) {
  Add(3);
  const pid_t router = node_.RouterProcess();
  std::atomic<bool> is_over = false;
  std::atomic<unsigned> answered = 0;
  std::thread load([&] {
    for (unsigned value = 1; !is_over && !HasFatalFailure(); ++value) {
      Ask(value, value % 2 == 0 ? kLong : 20);
      ++answered;
    }
  });
  for (int kills = 0; kills < 10 && !HasFailure(); ++kills) {
    node_.RestartTorpord();
    const unsigned before = answered;
    const auto goes_on = [&] { return answered > before || HasFailure(); };
    EXPECT_EQ(Await("requests are answered", goes_on), absl::OkStatus());
  }
  is_over = true;
  load.join();
  EXPECT_TRUE(AllLive());
  EXPECT_EQ(node_.RouterProcess(), router);
  if (HasFailure()) return;
  Add(4);
  Ask(1, 1);
  std::printf("%u requests were answered over ten kills\n", answered.load());
}

TEST_F(Successors, FunctionsWithoutRequestsAreReadyAgainByThemselves) {
  Ask(1, 20);
  Add(3);
  ASSERT_NO_FATAL_FAILURE(node_.RestartTorpord());
  EXPECT_EQ(Await("both go on", [&] { return Outlived("resumed") == 2; }), absl::OkStatus());
  Ask(2, 20);
  Add(4);
  EXPECT_TRUE(AllLive());
}

TEST_F(Successors, AHandoverLosesNothing) {
  Ask(1, 20);
  Add(3);
  std::thread request([&] { Ask(2, kLong); });
  node_.RestartTorpord(SIGUSR1);
  request.join();
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_EQ(Await("both go on", [&] { return Outlived("resumed") == 2; }), absl::OkStatus());
  Ask(3, 20);
  Add(4);
  EXPECT_TRUE(AllLive());
}

class ImpatientSuccessors : public Successors {
 protected:
  ImpatientSuccessors() : Successors("resume_patience: 2s\n") {}
};

TEST_F(ImpatientSuccessors, AFunctionThatDiesMeanwhileIsForgotten) {
  Ask(1, 20);
  Add(3);
  // So that torpord does not see the function's end.
  ASSERT_EQ(kill(node_.TorpordProcess(), SIGSTOP), 0);
  node_.StopFunction("chain");
  ASSERT_NO_FATAL_FAILURE(node_.RestartTorpord());
  EXPECT_EQ(Await("one has expired", [&] { return Outlived("expired") == 1; }), absl::OkStatus());
  EXPECT_EQ(Outlived("resumed"), 1);
  Add(4);
  hash_ = kChainBegin;
  ASSERT_NO_FATAL_FAILURE(
      node_.StartFunction("chain", {std::string(DRIVEN_DIR) + "/chain_server"}));
  Ask(1, 20);
}

}  // namespace
}  // namespace torpor::e2e
