#include "client_shim/core/program_devices.h"

#include <gtest/gtest.h>

namespace torpor::shim {
namespace {

std::vector<wire::DeviceDescription> Three() {
  std::vector<wire::DeviceDescription> devices(3);
  for (std::size_t i = 0; i < devices.size(); ++i)
    devices[i].uuid[0] = static_cast<std::uint8_t>(i);
  return devices;
}

TEST(ProgramDevicesTest, AllAreVisibleByDefault) {
  ProgramDevices devices;
  EXPECT_FALSE(devices.Has(0));
  devices.ShowAll(Three());
  EXPECT_TRUE(devices.Has(2));
  EXPECT_FALSE(devices.Has(3));
  EXPECT_FALSE(devices.Has(-1));
  EXPECT_EQ(devices.IndexOf(2), 2);
  EXPECT_EQ(devices.DeviceOf(2), 2);
}

TEST(ProgramDevicesTest, AChoiceHidesAndReorders) {
  ProgramDevices devices;
  devices.Choose({2, 0}, Three());
  devices.ShowAll(Three());
  ASSERT_EQ(devices.descriptions().size(), 2u);
  EXPECT_EQ(devices.descriptions()[0].uuid[0], 2);
  EXPECT_FALSE(devices.Has(2));
  EXPECT_EQ(devices.IndexOf(0), 2);
  EXPECT_EQ(devices.IndexOf(1), 0);
  EXPECT_EQ(devices.DeviceOf(0), 1);
  EXPECT_EQ(devices.DeviceOf(1), -1);
}

}  // namespace
}  // namespace torpor::shim
