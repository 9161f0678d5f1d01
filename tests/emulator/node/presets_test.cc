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

}  // namespace
}  // namespace torpor::emulator
