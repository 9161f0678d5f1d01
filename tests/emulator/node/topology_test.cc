#include "emulator/node/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace torpor::emulator {
namespace {

using testing::HasSubstr;

NodeResult<Topology> Parse(const std::string& rest) {
  return ParseTopology("version: v1\n" + rest, "node.yaml");
}

// What is wrong with a file of a `version` and these lines, which begin at line 2.
std::string Problem(const std::string& rest) {
  const auto topology = Parse(rest);
  return topology.ok() ? "" : topology.failure().message;
}

const std::string kGpus = "gpus: [{memory: 1GiB, count: 3}]\n";

TEST(TopologyTest, ReadsGpus) {
  const auto topology = Parse(R"(
pcie_switches: [{name: sw0, gbps: 16}]
gpus:
  - {name: Small, memory: 512MiB, pcie_gbps: 12.5, count: 2}
  - {name: Big, memory: 24GiB, pcie_switch: sw0, compute_capability: 9.0, multiprocessors: 132}
  - {memory: 1GiB, pcie_switch: sw0, pcie_gbps: 12, pageable_gbps: 6, copy_us: 2.5}
)");
  ASSERT_TRUE(topology.ok()) << topology.failure().message;
  ASSERT_EQ(topology->gpus.size(), 4U);
  EXPECT_EQ(topology->gpus[1].name, "Small");
  EXPECT_EQ(topology->gpus[1].memory, 512 * kMiB);
  EXPECT_EQ(topology->gpus[1].pcie_gbps, 12.5);
  EXPECT_EQ(topology->gpus[1].pcie_switch, std::nullopt);
  EXPECT_EQ(topology->gpus[1].compute_capability, 120U);
  EXPECT_EQ(topology->gpus[1].place, 1U);
  EXPECT_EQ(topology->gpus[2].place, 2U);
  EXPECT_EQ(topology->gpus[2].pcie_switch, 0U);
  EXPECT_EQ(topology->gpus[2].pcie_gbps, 16);  // the switch's: a GPU's own link is no slower
  EXPECT_EQ(topology->gpus[2].compute_capability, 90U);
  EXPECT_EQ(topology->gpus[2].multiprocessors, 132U);
  EXPECT_EQ(topology->gpus[3].pcie_gbps, 12);
  EXPECT_EQ(topology->gpus[3].pageable_gbps, 6);
  EXPECT_EQ(topology->gpus[3].copy_us, 2.5);
  EXPECT_EQ(topology->gpus[0].pageable_gbps, 0);
  EXPECT_EQ(topology->gpus[0].copy_us, 0);
  EXPECT_EQ(topology->switches[0].gbps, 16);
  EXPECT_EQ(topology->time_scale, 1);
  EXPECT_EQ(topology->nvlinks.Between(0, 1), 0U);
}

TEST(TopologyTest, ReadsNvlinksAsAMatrixOrAsPairs) {
  const auto matrix =
      Parse(kGpus + "nvlinks: {gbps_per_link: 25, matrix: [[0, 1, 0], [1, 0, 2], [0, 2, 0]]}");
  const auto pairs = Parse(kGpus +
                           "nvlinks:\n"
                           "  gbps_per_link: 25\n"
                           "  pairs: [{gpus: [1, 0]}, {gpus: [1, 2], links: 2}]\n");
  ASSERT_TRUE(matrix.ok()) << matrix.failure().message;
  ASSERT_TRUE(pairs.ok()) << pairs.failure().message;
  EXPECT_EQ(matrix->nvlinks.gbps_per_link, 25);
  EXPECT_EQ(matrix->nvlinks.Between(2, 1), 2U);
  EXPECT_EQ(matrix->nvlinks.Between(2, 0), 0U);
  EXPECT_EQ(matrix->nvlinks.links, pairs->nvlinks.links);
}

TEST(TopologyTest, ReadsModelledTimes) {
  const auto topology = Parse(kGpus + "time_scale: 10\nkernels: [{name: 'gemm*', us: 2.5}]\n");
  ASSERT_TRUE(topology.ok()) << topology.failure().message;
  EXPECT_EQ(topology->time_scale, 10);
  ASSERT_EQ(topology->kernels.size(), 1U);
  EXPECT_EQ(topology->kernels[0].name, "gemm*");
  EXPECT_EQ(topology->kernels[0].us, 2.5);
}

TEST(TopologyTest, ReadsWhetherItComputes) {
  const auto topology = Parse(kGpus + "computes: false\n");
  ASSERT_TRUE(topology.ok()) << topology.failure().message;
  EXPECT_FALSE(topology->computes);
  EXPECT_TRUE(Parse(kGpus)->computes);
}

TEST(TopologyTest, SaysWhatIsWrongAndWhere) {
  EXPECT_THAT(ParseTopology("gpus: []", "node.yaml").failure().message, HasSubstr("version: v1"));
  EXPECT_THAT(Problem("gpus:\n  - {memory: lots}"), HasSubstr("node.yaml:3: "));
  EXPECT_THAT(Problem("gpus:\n  - {memory: 1GiB, speed: 3}"), HasSubstr("'speed'"));
  EXPECT_THAT(Problem("gpus:\n  - {memory: 1GiB, memory: 2GiB}"),
              HasSubstr("node.yaml:3: key 'memory' twice"));
  EXPECT_THAT(Problem("gpus:\n  - {memory: 1GiB, pcie_gbps: -1}"), HasSubstr("pcie_gbps"));
  EXPECT_THAT(Problem("gpus:\n  - {memory: 1GiB, pcie_gbps: fast}"), HasSubstr("node.yaml:3: "));
  EXPECT_THAT(Problem("gpus:\n  - {memory: 1GiB, pcie_switch: a}"), HasSubstr("'a'"));
  EXPECT_THAT(Problem("gpus:\n  - {memory: 1GiB, count: 65}"), HasSubstr("64"));
  EXPECT_THAT(Problem("gpus:\n  - {memory: 1GiB, count: 40}\n  - {memory: 1GiB, count: 40}"),
              HasSubstr("node.yaml:4: "));
  EXPECT_THAT(Problem("gpus: []"), HasSubstr("gpus"));
  EXPECT_THAT(Problem("gpus: [3]"), HasSubstr("mapping"));
  EXPECT_THAT(Problem("gpus: ["), HasSubstr("node.yaml"));
  EXPECT_THAT(Problem(kGpus + "time_scale: 0"), HasSubstr("time_scale"));
  EXPECT_THAT(Problem(kGpus + "computes: 3"), HasSubstr("computes must be true or false"));
  EXPECT_THAT(Problem(kGpus + "kernels: [{us: 3}]"), HasSubstr("'name'"));
  EXPECT_THAT(Problem(kGpus + "kernels: [{name: k, us: -3}]"), HasSubstr("us must be"));
}

TEST(TopologyTest, SaysWhatIsWrongWithSwitches) {
  const std::string twice = "pcie_switches: [{name: a, gbps: 1}, {name: a, gbps: 2}]\n";
  EXPECT_THAT(Problem(twice + kGpus), HasSubstr("second switch 'a'"));
  EXPECT_THAT(Problem("pcie_switches: [{name: a}]\n" + kGpus), HasSubstr("gbps"));
  EXPECT_THAT(Problem("pcie_switches: [{name: a, gbps: 9}]\n"
                      "gpus:\n"
                      "  - {memory: 1GiB, pcie_switch: a, count: 10}\n"
                      "  - {memory: 1GiB, pcie_switch: a, count: 10}\n"),
              HasSubstr("node.yaml:5: at most 16"));
}

TEST(TopologyTest, SaysWhatIsWrongWithNvlinks) {
  const auto problem = [](const std::string& nvlinks) {
    return Problem(kGpus + "nvlinks: {" + nvlinks + "}");
  };
  EXPECT_THAT(problem("matrix: [[0]]"), HasSubstr("gbps_per_link"));
  EXPECT_THAT(problem("gbps_per_link: 25"), HasSubstr("'matrix' or 'pairs'"));
  EXPECT_THAT(problem("gbps_per_link: 25, matrix: [[0]]"), HasSubstr("3 rows"));
  EXPECT_THAT(problem("gbps_per_link: 25, matrix: [[0, 1, 0], [1, 0, 2], [0, 1, 0]]"),
              HasSubstr("GPUs 1 and 2 disagree"));
  EXPECT_THAT(problem("gbps_per_link: 25, matrix: [[1, 1, 0], [1, 0, 2], [0, 2, 0]]"),
              HasSubstr("itself"));
  EXPECT_THAT(problem("gbps_per_link: 25, pairs: [{gpus: [0, 3]}]"), HasSubstr("0 to 2"));
  EXPECT_THAT(problem("gbps_per_link: 25, pairs: [{gpus: [1, 1]}]"), HasSubstr("different"));
  EXPECT_THAT(problem("gbps_per_link: 25, pairs: [{gpus: [0, 1]}, {gpus: [1, 0]}]"),
              HasSubstr("already"));
}

}  // namespace
}  // namespace torpor::emulator
