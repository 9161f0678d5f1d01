#include "emulator/node/fault_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "emulator/node/route.h"
#include "emulator/node/topology.h"
#include "tests/emulator/node/four_gpus.h"

namespace torpor::emulator {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr TimePoint kStart = TimePoint(std::chrono::hours(1));

NodeResult<Topology> ParsePlan(const std::string& faults) {
  return ParseTopology(
      "version: v1\n"
      "pcie_switches: [{name: sw0, gbps: 13}]\n"
      "gpus:\n"
      "  - {memory: 1GiB, pcie_switch: sw0, count: 2}\n"
      "  - {memory: 1GiB}\n"
      "nvlinks: {gbps_per_link: 25, pairs: [{gpus: [0, 1]}]}\n"
      "faults:\n" +
          faults,
      "node.yaml");
}

std::string ProblemOf(const std::string& faults) {
  const auto topology = ParsePlan(faults);
  return topology.ok() ? "" : topology.failure().message;
}

TEST(FaultPlanTest, ReadsCallsAndLinks) {
  const auto topology = ParsePlan(
      "  calls:\n"
      "    - {call: launch, nth: 100, effect: kill}\n"
      "    - {gpu: 2, call: allocation, nth: 3, effect: fail}\n"
      "    - {gpu: 1, call: copy, nth: 1, effect: ecc}\n"
      "  links:\n"
      "    - {gpu: 1, from_ms: 1.5, to_ms: 2, factor: 0.1}\n"
      "    - {pcie_switch: sw0, from_ms: 0, to_ms: 1000, factor: 0}\n"
      "    - {gpus: [1, 0], from_ms: 0, to_ms: 1, factor: 2}\n");
  ASSERT_TRUE(topology.ok()) << topology.failure().message;
  EXPECT_THAT(topology->plan.calls,
              ElementsAre(CallFault{0, CallKind::kLaunch, 100, CallEffect::kKill},
                          CallFault{2, CallKind::kAllocation, 3, CallEffect::kFail},
                          CallFault{1, CallKind::kCopy, 1, CallEffect::kEcc}));
  const RateWindow slow = {microseconds(1500), milliseconds(2), 0.1};
  const RateWindow still = {milliseconds(0), milliseconds(1000), 0};
  const RateWindow fast = {milliseconds(0), milliseconds(1), 2};
  EXPECT_THAT(
      topology->plan.links,
      ElementsAre(LinkFault{.window = slow, .gpu = 1}, LinkFault{.window = still, .pcie_switch = 0},
                  LinkFault{.window = fast, .nvlink = std::pair(1U, 0U)}));
}

TEST(FaultPlanTest, MistakesAreToldWithTheirLine) {
  EXPECT_THAT(ProblemOf("  calls: [{call: launch, effect: kill}]\n"),
              HasSubstr("node.yaml:8: needs 'nth'"));
  EXPECT_THAT(ProblemOf("  calls: [{call: free, nth: 1, effect: kill}]\n"),
              HasSubstr("'call' must be one of launch, copy, allocation"));
  EXPECT_THAT(ProblemOf("  calls: [{call: copy, nth: 1}]\n"),
              HasSubstr("'effect' must be one of kill, fail, ecc"));
  EXPECT_THAT(ProblemOf("  calls: [{call: copy, nth: 0, effect: kill}]\n"), HasSubstr("nth"));
  EXPECT_THAT(ProblemOf("  calls: [{gpu: 3, call: copy, nth: 1, effect: kill}]\n"),
              HasSubstr("a GPU"));
  EXPECT_THAT(ProblemOf("  calls: [{call: launch, nth: 1, effect: fail}]\n"),
              HasSubstr("only an allocation can fail"));
  EXPECT_THAT(ProblemOf("  calls: [{call: allocation, nth: 1, effect: ecc}]\n"),
              HasSubstr("an allocation has no ecc error"));
  EXPECT_THAT(ProblemOf("  calls: [{call: copy, nth: 1, effect: kill, often: 2}]\n"),
              HasSubstr("often"));
  EXPECT_THAT(ProblemOf("  calls: 5\n"), HasSubstr("calls"));
  const std::string window = "from_ms: 0, to_ms: 1, factor: 0.5";
  EXPECT_THAT(ProblemOf("  links: [{" + window + "}]\n"), HasSubstr("one of them"));
  EXPECT_THAT(ProblemOf("  links: [{gpu: 0, gpus: [0, 1], " + window + "}]\n"),
              HasSubstr("one of them"));
  EXPECT_THAT(ProblemOf("  links: [{gpu: 2, " + window + "}]\n"), HasSubstr("has no rate"));
  EXPECT_THAT(ProblemOf("  links: [{gpus: [0, 2], " + window + "}]\n"),
              HasSubstr("no NVLink between"));
  EXPECT_THAT(ProblemOf("  links: [{gpus: [0], " + window + "}]\n"), HasSubstr("[0, 1]"));
  EXPECT_THAT(ProblemOf("  links: [{pcie_switch: sw1, " + window + "}]\n"),
              HasSubstr("no pcie_switches entry 'sw1'"));
  EXPECT_THAT(ProblemOf("  links: [{gpu: 0, from_ms: 2, to_ms: 2, factor: 1}]\n"),
              HasSubstr("to_ms must be later"));
  EXPECT_THAT(ProblemOf("  links: [{gpu: 0, from_ms: 0, to_ms: 2, factor: -1}]\n"),
              HasSubstr("factor"));
}

TEST(FaultPlanTest, CallsOfAKindAndAGpuAreCountedOverTheWholeNode) {
  PrivateNode node;
  FaultPlan plan;
  plan.calls = {{0, CallKind::kLaunch, 2, CallEffect::kKill},
                {0, CallKind::kLaunch, 3, CallEffect::kEcc},
                {1, CallKind::kCopy, 1, CallEffect::kEcc}};
  const auto count = [&](CallKind call, unsigned place) {
    return CountCall(plan, node.state(), call, place);
  };
  EXPECT_EQ(count(CallKind::kCopy, 0), std::nullopt);
  EXPECT_EQ(count(CallKind::kLaunch, 1), std::nullopt);
  EXPECT_EQ(count(CallKind::kLaunch, 0), std::nullopt);
  EXPECT_EQ(count(CallKind::kLaunch, 0), CallEffect::kKill);
  EXPECT_EQ(count(CallKind::kLaunch, 0), CallEffect::kEcc);
  EXPECT_EQ(count(CallKind::kLaunch, 0), std::nullopt);
  EXPECT_EQ(count(CallKind::kCopy, 1), CallEffect::kEcc);
  EXPECT_EQ(count(CallKind::kCopy, 1), std::nullopt);
}

TEST(LinkWindowsTest, BytesPassAtTheRateOfEachMoment) {
  constexpr double kRate = 1e9;  // a byte a nanosecond
  const LinkWindows none;
  EXPECT_EQ(none.EndOf(kStart, 1000, kRate), kStart + Duration(1000));
  // A tenth from 1 ms to 3 ms of the model, in which time passes at half its rate.
  const LinkWindows slow({{milliseconds(1), milliseconds(3), 0.1}}, kStart, 2);
  EXPECT_EQ(slow.EndOf(kStart, 1'000'000, kRate), kStart + milliseconds(1)) << "before";
  EXPECT_EQ(slow.EndOf(kStart + milliseconds(2), 100'000, kRate), kStart + milliseconds(3));
  EXPECT_EQ(slow.EndOf(kStart + milliseconds(1), 1'100'000, kRate), kStart + milliseconds(3));
  EXPECT_EQ(slow.EndOf(kStart + milliseconds(5), 1'100'000, kRate), kStart + milliseconds(7));
  EXPECT_EQ(slow.EndOf(kStart + milliseconds(6), 1'000, kRate),
            kStart + milliseconds(6) + microseconds(1));
  const LinkWindows still({{milliseconds(1), milliseconds(3), 0}}, kStart, 1);
  EXPECT_EQ(still.EndOf(kStart + milliseconds(2), 1'000, kRate),
            kStart + milliseconds(3) + microseconds(1));
  const LinkWindows both(
      {{milliseconds(0), milliseconds(2), 0.5}, {milliseconds(1), milliseconds(3), 0.5}}, kStart,
      1);
  EXPECT_EQ(both.EndOf(kStart + milliseconds(1), 250'000, kRate), kStart + milliseconds(2));
}

TEST(LinkWindowsTest, AWindowIsOfOneLink) {
  Topology topology = FourGpus();
  PrivateNode node;
  node.state().began_ns = kStart.time_since_epoch().count();
  const RateWindow half = {Duration{}, std::chrono::hours(1), 0.5};
  topology.plan.links = {{.window = half, .gpu = 0}, {.window = half, .nvlink = std::pair(1U, 2U)}};
  const auto reserve = [&](std::optional<unsigned> from, std::optional<unsigned> to, Bytes size) {
    return RouteBetween(topology, node.state(), from, to).Reserve(kStart, size) - kStart;
  };
  EXPECT_EQ(reserve(std::nullopt, 0, 12'000'000), microseconds(2000));
  EXPECT_EQ(reserve(0, std::nullopt, 12'000'000), microseconds(2000));
  EXPECT_EQ(reserve(std::nullopt, 3, 12'000'000), microseconds(1000));
  EXPECT_EQ(reserve(1, 2, 50'000'000), microseconds(2000));
  EXPECT_EQ(reserve(2, 1, 50'000'000), microseconds(2000));
  EXPECT_EQ(reserve(0, 1, 25'000'000), microseconds(1000));
}

}  // namespace
}  // namespace torpor::emulator
