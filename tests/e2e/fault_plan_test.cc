// Nodes that fail as their topology's fault plan says, and what becomes of the functions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "tests/e2e/await.h"
#include "tests/e2e/driven/chain_numbers.h"
#include "tests/e2e/emulated_node.h"
#include "tests/e2e/metrics_page.h"

namespace torpor::e2e {
namespace {

constexpr unsigned kElements = 16u << 18;  // of a state_server

class FaultPlan : public testing::Test {
 protected:
  // Functions a and b.
  void Start(const std::string& gpus, const std::string& faults) {
    node_ = std::make_unique<EmulatedNode>("version: v1\ngpus:\n" + gpus + "faults:\n" + faults,
                                           std::vector<std::string>{"a", "b"});
    node_->Start();
  }
  void TearDown() override {
    if (HasFailure() && node_) std::fputs(node_->Logs().c_str(), stderr);
  }
  void StartState(const std::string& name) {
    node_->StartFunction(name, {std::string(DRIVEN_DIR) + "/state_server", "--megabytes", "16"});
  }
  Reply Add(const std::string& name, unsigned value) const {
    return node_->PostOne("/function/" + name + "/add",
                          "{\"value\":[" + std::to_string(value) + "]}");
  }
  void ExpectSum(const std::string& name, unsigned value, std::uint64_t sum) const {
    const Reply reply = Add(name, value);
    EXPECT_EQ(reply.status, 200) << reply.body;
    EXPECT_EQ(reply.body, "{\"sum\":" + std::to_string(sum * kElements) + "}\n");
  }
  double LostExecutors() const {
    return ValueOf(node_->Metrics(), "torpor_executors_lost_total", {});
  }

  std::unique_ptr<EmulatedNode> node_;
};

TEST_F(FaultPlan, ExecutorsThatAreKilledInMidRequestCostNoAnswer) {
  Start("  - {memory: 96MiB, count: 2}\n",
        "  calls:\n"
        "    - {gpu: 0, call: launch, nth: 150, effect: kill}\n"
        "    - {gpu: 0, call: launch, nth: 400, effect: kill}\n"
        "    - {gpu: 1, call: launch, nth: 150, effect: kill}\n"
        "    - {gpu: 1, call: copy, nth: 300, effect: kill}\n");
  node_->StartFunction("a", {std::string(DRIVEN_DIR) + "/chain_server"});
  unsigned hash = kChainBegin;
  for (unsigned value = 1; value <= 60 && !HasFailure(); ++value) {
    for (unsigned step = 0; step < 20; ++step) {
      hash = hash * kChainFactor + value + value / 2 + step;
    }
    const Reply reply = node_->PostOne(
        "/function/a/chain", "{\"value\":[" + std::to_string(value) + "],\"steps\":[20]}");
    EXPECT_EQ(reply.status, 200) << reply.body;
    EXPECT_EQ(reply.body, "{\"sum\":" + std::to_string(hash) + "}\n");
  }
  EXPECT_GE(LostExecutors(), 1);
  std::printf("%.0f executors were lost\n", LostExecutors());
}

TEST_F(FaultPlan, AnEccErrorEndsOneProgramAndIsNotHeldAgainstIt) {
  // Executors launch kernels, too.
  Start("  - {memory: 96MiB}\n", "  calls: [{call: launch, nth: 60, effect: ecc}]\n");
  for (const char* name : {"a", "b"}) StartState(name);
  unsigned sum = 0;
  std::string broken;
  while (broken.empty() && sum < 60 && !HasFailure()) {
    ++sum;
    for (const char* name : {"a", "b"}) {
      const Reply reply = Add(name, 1);
      if (reply.status == 200) continue;
      EXPECT_NE(reply.body.find("ECC"), std::string::npos) << reply.body;
      EXPECT_EQ(broken, "");
      broken = name;
    }
  }
  ASSERT_NE(broken, "");
  ExpectSum(broken == "a" ? "b" : "a", 1, sum + 1);
  EXPECT_EQ(LostExecutors(), 1);
  EXPECT_EQ(ValueOf(node_->Metrics(), "torpor_function_strikes_total", {}), 0);
  node_->StopFunction(broken);
  StartState(broken);
  ExpectSum(broken, 2, 2);
}

TEST_F(FaultPlan, AnAllocationThatFailsCostsAStartAtMost) {
  Start("  - {memory: 96MiB}\n", "  calls: [{call: allocation, nth: 3, effect: fail}]\n");
  StartState("a");
  ExpectSum("a", 2, 2);
  StartState("b");
  ExpectSum("b", 5, 5);
  ExpectSum("a", 1, 3);
}

TEST_F(FaultPlan, ALinkThatIsSlowDelaysAndLosesNothing) {
  // An image of 16 MiB and more takes 4 ms, and 80 ms over the slow link.
  Start("  - {memory: 36MiB, pcie_gbps: 4}\n",
        "  links: [{gpu: 0, from_ms: 0, to_ms: 600000, factor: 0.05}]\n");
  StartState("a");
  StartState("b");
  ExpectSum("a", 1, 1);
  ExpectSum("b", 1, 1);
  const auto swaps = [&](const char* what) {
    return ValueOf(node_->Metrics(), std::string("torpor_swap_duration_seconds_") + what,
                   {"direction=\"in\""});
  };
  const double count = swaps("count");
  const double seconds = swaps("sum");
  for (unsigned round = 2; round <= 4; ++round) {
    ExpectSum("a", 1, round);
    ExpectSum("b", 1, round);
  }
  ASSERT_GT(swaps("count"), count) << "the GPU has room for both";
  const double each = (swaps("sum") - seconds) / (swaps("count") - count);
  EXPECT_GT(each, 0.04);
  std::printf("a swap-in took %.0f ms\n", 1000 * each);
}

}  // namespace
}  // namespace torpor::e2e
