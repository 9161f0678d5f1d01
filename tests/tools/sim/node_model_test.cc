#include "tools/sim/node_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace torpor::sim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr Bytes kReserved = 1'080'000'000;

TEST(NodeModel, ThePapersNode) {
  const auto node = ReadNodeModel("paper-4gpu", kReserved);
  ASSERT_TRUE(node.ok()) << node.status().message();
  ASSERT_EQ(node->gpus.size(), 4u);
  ASSERT_EQ(node->switches.size(), 2u);
  EXPECT_EQ(node->gpus[0].capacity, 30'000'000'000u);
  EXPECT_EQ(node->gpus[3].pcie_switch, 1u);
  EXPECT_EQ(node->gpus[3].place_behind_switch, 1u);
  EXPECT_DOUBLE_EQ(node->switches[1].bytes_per_s, 13e9);
  EXPECT_THAT(node->switches[1].gpu_links, ElementsAre(12e9, 12e9));
}

TEST(NodeModel, SourcesTheFastestFirst) {
  const auto node = ReadNodeModel("paper-4gpu", kReserved);
  ASSERT_TRUE(node.ok());
  EXPECT_THAT(node->gpus[0].sources, ElementsAre(GpuIndex{3}, GpuIndex{1}, GpuIndex{2}));
  EXPECT_DOUBLE_EQ(node->gpus[0].nvlink_bytes_per_s[3], 50e9);
  EXPECT_DOUBLE_EQ(node->gpus[0].nvlink_bytes_per_s[0], 0);
}

TEST(NodeModel, OtherShippedNodes) {
  EXPECT_EQ(ReadNodeModel("paper-1gpu", kReserved)->switches.size(), 1u);
  EXPECT_EQ(ReadNodeModel("nvswitch-8gpu", kReserved)->gpus[7].sources.size(), 7u);
  const auto unlinked = ReadNodeModel("unlinked-2gpu", kReserved);
  EXPECT_THAT(unlinked->gpus[0].sources, IsEmpty());
  EXPECT_EQ(unlinked->gpus[0].pcie_switch, unlinked->gpus[1].pcie_switch);
}

TEST(NodeModel, ErrorsSayWhatIsWrong) {
  EXPECT_THAT(std::string(ReadNodeModel("no-such-node", 0).status().message()),
              HasSubstr("neither a topology file nor one of paper-4gpu"));
  EXPECT_THAT(std::string(ReadNodeModel("paper-4gpu", kGiB << 10).status().message()),
              HasSubstr("no more memory than the profiles reserve"));
}

}  // namespace
}  // namespace torpor::sim
