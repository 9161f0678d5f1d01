#include "server/daemon/topology_preset.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace torpor::server {
namespace {

class TopologyPresetTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "topology-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
    std::filesystem::create_directories(root_ / "bin");
    std::filesystem::create_directories(root_ / "lib/torpor/topologies");
    std::ofstream(root_ / "lib/torpor/topologies/small.yaml") << "version: v1\n";
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  std::string Find(const std::filesystem::path& path) const {
    return FindTopology(path.string(), (root_ / "bin").string());
  }

  std::filesystem::path root_;
};

TEST_F(TopologyPresetTest, APresetIsFoundByItsName) {
  EXPECT_EQ(Find(root_ / "small"), (root_ / "lib/torpor/topologies/small.yaml").string());
}

TEST_F(TopologyPresetTest, AFileGoesBeforeAPreset) {
  std::ofstream(root_ / "small") << "version: v1\n";
  EXPECT_EQ(Find(root_ / "small"), (root_ / "small").string());
}

TEST_F(TopologyPresetTest, WhatIsNotThereStaysAsItIs) {
  EXPECT_EQ(Find(root_ / "large"), (root_ / "large").string());
  EXPECT_EQ(Find(""), "");
}

}  // namespace
}  // namespace torpor::server
