#include "emulator/driver/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace torpor::emulator {
namespace {

using testing::HasSubstr;

std::string Problem(const std::string& text) {
  const auto topology = ParseTopology(text, "node.yaml");
  return topology.ok() ? "" : topology.failure().message;
}

TEST(TopologyTest, ReadsGpus) {
  const auto topology = ParseTopology(R"(
version: v1
pcie_switches: [{name: sw0, gbps: 16}]
gpus:
  - {name: Small, memory: 512MiB, pcie_gbps: 12.5, count: 2}
  - {name: Big, memory: 24GiB, pcie_switch: sw0, compute_capability: 9.0, multiprocessors: 132}
)",
                                      "node.yaml");
  ASSERT_TRUE(topology.ok()) << topology.failure().message;
  ASSERT_EQ(topology->gpus.size(), 3U);
  EXPECT_EQ(topology->gpus[1].name, "Small");
  EXPECT_EQ(topology->gpus[1].memory, 512 * kMiB);
  EXPECT_EQ(topology->gpus[1].pcie_gbps, 12.5);
  EXPECT_EQ(topology->gpus[1].compute_capability, 120U);
  EXPECT_EQ(topology->gpus[1].place, 1U);
  EXPECT_EQ(topology->gpus[2].place, 2U);
  EXPECT_EQ(topology->gpus[2].pcie_gbps, 16);
  EXPECT_EQ(topology->gpus[2].compute_capability, 90U);
  EXPECT_EQ(topology->gpus[2].multiprocessors, 132U);
}

TEST(TopologyTest, SaysWhatIsWrongAndWhere) {
  EXPECT_THAT(Problem("gpus: []"), HasSubstr("version: v1"));
  EXPECT_THAT(Problem("version: v1\ngpus:\n  - {memory: lots}"), HasSubstr("node.yaml:3: "));
  EXPECT_THAT(Problem("version: v1\ngpus:\n  - {memory: 1GiB, speed: 3}"), HasSubstr("'speed'"));
  EXPECT_THAT(Problem("version: v1\ngpus:\n  - {memory: 1GiB, pcie_gbps: -1}"),
              HasSubstr("pcie_gbps"));
  EXPECT_THAT(Problem("version: v1\ngpus:\n  - {memory: 1GiB, pcie_switch: a}"), HasSubstr("'a'"));
  EXPECT_THAT(Problem("version: v1\ngpus:\n  - {memory: 1GiB, count: 65}"), HasSubstr("64"));
  EXPECT_THAT(Problem("version: [v1"), HasSubstr("node.yaml"));
}

TEST(TopologyTest, ParsesBytes) {
  EXPECT_EQ(*ParseBytes("512MiB"), 512 * kMiB);
  EXPECT_EQ(*ParseBytes("1.5 GiB"), 3 * kGiB / 2);
  EXPECT_EQ(*ParseBytes("80GB"), 80'000'000'000U);
  EXPECT_EQ(*ParseBytes("4096"), 4096U);
  EXPECT_FALSE(ParseBytes("-1GiB").ok());
  EXPECT_FALSE(ParseBytes("1 gallon").ok());
  EXPECT_FALSE(ParseBytes("1e30GiB").ok());
  EXPECT_FALSE(ParseBytes("").ok());
}

TEST(TopologyTest, VisibleDevicesSelectAndReorder) {
  Topology topology;
  for (const char* name : {"a", "b", "c"}) {
    GpuSpec spec;
    spec.name = name;
    topology.gpus.push_back(spec);
  }
  const auto names = [&](const char* visible) {
    std::string joined;
    for (const GpuSpec& spec : SelectVisible(topology, visible).gpus) joined += spec.name;
    return joined;
  };
  EXPECT_EQ(names("2,0"), "ca");
  EXPECT_EQ(names("1,7,0"), "b");
  EXPECT_EQ(names(""), "");
  EXPECT_EQ(names("-1"), "");
  EXPECT_EQ(names("0,0"), "a");
}

}  // namespace
}  // namespace torpor::emulator
