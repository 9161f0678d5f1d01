#include "server/controller/pcie_switch.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/server/links/test_server.h"

namespace torpor::server {
namespace {

class PcieSwitchTest : public testing::Test {
 protected:
  // As Linux does: a link to the device among those that lead to it.
  void AddDevice(const std::string& id, const std::string& way) {
    namespace fs = std::filesystem;
    const std::string device = folder_.path("devices/pci0000:3a/" + way + id);
    fs::create_directories(device);
    fs::create_directories(folder_.path("bus"));
    fs::create_directory_symlink(device, folder_.path("bus/" + id));
  }
  std::optional<int> Find(const std::string& id) { return PcieSwitchOf(id, folder_.path("bus")); }

  TemporaryFolder folder_;
};

TEST_F(PcieSwitchTest, GpusBehindOneRootPortShareIt) {
  AddDevice("0000:3d:00.0", "0000:3a:00.0/0000:3b:00.0/0000:3c:04.0/");
  AddDevice("0000:3e:00.0", "0000:3a:00.0/0000:3b:00.0/0000:3c:08.0/");
  AddDevice("0000:5e:00.0", "0000:3a:02.0/");
  ASSERT_TRUE(Find("0000:3D:00.0"));
  EXPECT_EQ(Find("0000:3D:00.0"), Find("0000:3E:00.0"));
  ASSERT_TRUE(Find("0000:5E:00.0"));
  EXPECT_NE(Find("0000:3D:00.0"), Find("0000:5E:00.0"));
}

TEST_F(PcieSwitchTest, WhatLinuxDoesNotKnowIsUnknown) {
  EXPECT_FALSE(Find("0000:3d:00.0"));
  EXPECT_FALSE(Find(""));
  EXPECT_FALSE(Find("../../etc"));
  EXPECT_FALSE(EmulatedPcieSwitchOf("here"));
}

TEST_F(PcieSwitchTest, EmulatedBusesAreNumberedBySwitch) {
  EXPECT_EQ(EmulatedPcieSwitchOf("0000:10:00.0"), EmulatedPcieSwitchOf("0000:1f:00.0"));
  EXPECT_NE(EmulatedPcieSwitchOf("0000:10:00.0"), EmulatedPcieSwitchOf("0000:20:00.0"));
  EXPECT_NE(EmulatedPcieSwitchOf("0000:10:00.0"), EmulatedPcieSwitchOf("0001:10:00.0"));
}

}  // namespace
}  // namespace torpor::server
