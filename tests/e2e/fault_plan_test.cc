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

using testing::AllOf;
using testing::HasSubstr;

constexpr unsigned kElements = 16u << 18;  // of a state_server

// Has room for one state_server.
constexpr const char* kGpuOfOne = "  - {memory: 36MiB}\n";
// Two state_servers fit, and leave less than a sixteenth.
constexpr const char* kFullHost = "host_memory: 38MiB\nspill_limit: 1GiB\n";

class FaultPlan : public testing::Test {
 protected:
  // Functions a and b.
  void Start(const std::string& gpus, const std::string& faults, const std::string& settings = "",
             const std::string& function_setting = "") {
    node_ = std::make_unique<EmulatedNode>("version: v1\ngpus:\n" + gpus + "faults:\n" + faults,
                                           std::vector<std::string>{"a", "b"}, settings, /*gpus=*/1,
                                           function_setting);
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
  double SpillFailures(const std::string& direction) const {
    return ValueOf(node_->Metrics(), "torpor_spill_failures_total",
                   {"direction=\"" + direction + "\""});
  }
  bool IsReady(const std::string& name) const {
    return ReadPage(node_->http_address(), "/v2/models/" + name + "/ready")
        .starts_with("HTTP/1.1 200");
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

TEST_F(FaultPlan, WorkThatMeetsAnEccErrorIsRepeated) {
  // Executors launch kernels, too.
  Start("  - {memory: 96MiB}\n", "  calls: [{call: launch, nth: 60, effect: ecc}]\n");
  for (const char* name : {"a", "b"}) StartState(name);
  for (unsigned sum = 1; sum < 60 && !HasFailure(); ++sum) {
    for (const char* name : {"a", "b"}) ExpectSum(name, 1, sum);
  }
  EXPECT_EQ(LostExecutors(), 1);
  EXPECT_EQ(ValueOf(node_->Metrics(), "torpor_function_strikes_total", {}), 0);
}

TEST_F(FaultPlan, WithoutDurabilityAnEccErrorEndsOneProgramAndIsNotHeldAgainstIt) {
  Start("  - {memory: 96MiB}\n", "  calls: [{call: launch, nth: 60, effect: ecc}]\n", "",
        "durability: none");
  for (const char* name : {"a", "b"}) StartState(name);
  std::string broken;
  for (unsigned request = 0; broken.empty() && request < 120 && !HasFailure(); ++request) {
    const std::string name = request % 2 == 0 ? "a" : "b";
    const Reply reply = Add(name, 1);
    if (reply.status == 200) continue;
    EXPECT_NE(reply.body.find("ECC"), std::string::npos) << reply.body;
    broken = name;
  }
  ASSERT_NE(broken, "");
  EXPECT_EQ(LostExecutors(), 1);
  EXPECT_EQ(ValueOf(node_->Metrics(), "torpor_function_strikes_total", {}), 0);
  node_->StopFunction(broken);
  StartState(broken);
  EXPECT_EQ(Add(broken, 2).status, 200);
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

TEST_F(FaultPlan, AFullDiskLeavesImagesInMemoryAndEveryAnswerRight) {
  Start(kGpuOfOne,
        "  disk: [{operation: write, path: '*.image', nth: 1, times: forever, error: ENOSPC}]\n",
        kFullHost);
  for (const char* name : {"a", "b"}) StartState(name);
  for (const char* name : {"a", "b"}) ExpectSum(name, 1, 1);
  const auto has_failed = [&] { return SpillFailures("out") >= 1; };
  ASSERT_EQ(Await("an image was to be spilled", has_failed), absl::OkStatus());
  for (unsigned sum = 2; sum <= 4; ++sum) {
    for (const char* name : {"a", "b"}) ExpectSum(name, 1, sum);
  }
  EXPECT_EQ(node_->Status().at("spills").at("images"), 0);
  EXPECT_THAT(node_->Logs(), HasSubstr("the fault plan's disk fails operation=write path="));
  EXPECT_THAT(node_->Logs(), AllOf(HasSubstr("images stay in host memory for 30 s"),
                                   HasSubstr("No space left on device")));
}

TEST_F(FaultPlan, AnImageThatComesBackWithWrongBytesEndsItsProgramAndNoOther) {
  Start(kGpuOfOne, "  disk: [{operation: read, path: '*.image', nth: 2, error: wrong_bytes}]\n",
        kFullHost);
  StartState("a");
  ExpectSum("a", 1, 1);
  StartState("b");
  const auto is_spilled = [&] { return node_->Status().at("spills").at("images") >= 1; };
  ASSERT_EQ(Await("an image is on the disk", is_spilled), absl::OkStatus());
  const Reply reply = Add("a", 1);
  EXPECT_GE(reply.status, 500) << reply.body;
  EXPECT_THAT(reply.body, HasSubstr("cudaErrorDevicesUnavailable"));
  EXPECT_THAT(node_->function("a").Stderr(), HasSubstr(".image has other bytes"));
  EXPECT_THAT(node_->Logs(), HasSubstr("is lost: its memory could not be read from the disk"));
  EXPECT_EQ(SpillFailures("back"), 1);
  EXPECT_FALSE(IsReady("a"));
  EXPECT_TRUE(IsReady("b"));
  ExpectSum("b", 1, 1);
  node_->StopFunction("a");
  StartState("a");
  ExpectSum("a", 3, 3);
}

TEST_F(FaultPlan, AChangeThatTheDiskDoesNotKeepIsNotApplied) {
  Start("  - {memory: 96MiB}\n",
        "  disk: [{operation: sync, path: '*/changes.json*', nth: 1, error: EIO}]\n");
  const std::vector<std::string> change = {"function", "set", "a", "--deadline", "2s"};
  EXPECT_THAT(node_->RefusedTorporctl(change),
              AllOf(HasSubstr("not applied"), HasSubstr("Input/output error")));
  node_->Torporctl(change);
}

}  // namespace
}  // namespace torpor::e2e
