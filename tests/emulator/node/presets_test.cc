#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "emulator/node/topology.h"

namespace torpor::emulator {
namespace {

Topology Read(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  auto topology = ParseTopology(text.str(), path.string());
  EXPECT_TRUE(topology.ok()) << topology.failure().message;
  return topology.ok() ? *topology : Topology();
}

TEST(PresetsTest, AllAreValid) {
  for (const auto& entry : std::filesystem::directory_iterator(TORPOR_TOPOLOGY_DIR)) {
    EXPECT_FALSE(Read(entry.path()).gpus.empty()) << entry.path();
  }
}

TEST(PresetsTest, ThePapersNode) {
  const Topology topology = Read(TORPOR_TOPOLOGY_DIR "/paper-4gpu.yaml");
  ASSERT_EQ(topology.gpus.size(), 4U);
  for (const GpuSpec& gpu : topology.gpus) {
    EXPECT_EQ(gpu.pcie_gbps, 12);
    EXPECT_EQ(gpu.pageable_gbps, 6);
    EXPECT_EQ(gpu.copy_us, 8);
    EXPECT_EQ(gpu.pcie_switch, gpu.place / 2);
  }
  for (const PcieSwitch& entry : topology.switches) EXPECT_EQ(entry.gbps, 13);
  EXPECT_EQ(topology.nvlinks.Between(0, 3), 2U);
  EXPECT_EQ(topology.nvlinks.Between(0, 1), 1U);
}

TEST(PresetsTest, TheNodesOfTheH200AreStrict) {
  for (const char* const name : {"h200-1gpu", "h200-8gpu"}) {
    const Topology topology = Read(std::string(TORPOR_TOPOLOGY_DIR "/") + name + ".yaml");
    EXPECT_EQ(topology.strict, Strictness::All()) << name;
    EXPECT_EQ(topology.costs.ContextMemory(topology.gpus.front().memory), 527 * kMiB);
    EXPECT_EQ(topology.gpus.front().pcie_gbps, 55);
    EXPECT_EQ(topology.gpus.front().compute_capability, 90U);
  }
  EXPECT_EQ(Read(TORPOR_TOPOLOGY_DIR "/h200-8gpu.yaml").nvlinks.Between(0, 7), 18U);
}

}  // namespace
}  // namespace torpor::emulator
