#include "client_shim/core/visible_devices.h"

#include <gtest/gtest.h>

namespace torpor::shim {
namespace {

// Of GPU-00112233-..., GPU-00112244-... and GPU-ff....
std::vector<wire::DeviceDescription> ThreeDevices() {
  std::vector<wire::DeviceDescription> devices(3);
  devices[0].uuid = {0x00, 0x11, 0x22, 0x33};
  devices[1].uuid = {0x00, 0x11, 0x22, 0x44};
  devices[2].uuid = {0xff};
  return devices;
}

std::vector<int> Visible(std::string_view text) { return VisibleDevices(text, ThreeDevices()); }
using Indices = std::vector<int>;

TEST(VisibleDevicesTest, IndicesInTheirOrder) {
  EXPECT_EQ(Visible("0"), Indices({0}));
  EXPECT_EQ(Visible("2,0"), Indices({2, 0}));
  EXPECT_EQ(Visible("0,1,2"), Indices({0, 1, 2}));
  EXPECT_EQ(Visible(" 1, 2"), Indices({1, 2}));
  EXPECT_EQ(Visible("+1gpu,2 "), Indices({1, 2}));
}

TEST(VisibleDevicesTest, TheListEndsBeforeWhatNamesNone) {
  EXPECT_EQ(Visible("0,2,-1,1"), Indices({0, 2}));
  EXPECT_EQ(Visible("1,3,2"), Indices({1}));
  EXPECT_EQ(Visible("1,,2"), Indices({1}));
  EXPECT_EQ(Visible("2,GPU-00112233"), Indices({2}));
  EXPECT_EQ(Visible("0,99999999999999999999"), Indices({0}));
}

TEST(VisibleDevicesTest, NothingLeavesNone) {
  for (const char* const text : {"", "-1", "3", "no", "MIG-0", ","}) {
    EXPECT_EQ(Visible(text), Indices()) << text;
  }
}

TEST(VisibleDevicesTest, ADeviceNamedTwiceLeavesNone) {
  EXPECT_EQ(Visible("0,1,0"), Indices());
  EXPECT_EQ(Visible("GPU-ff,GPU-ff00"), Indices());
}

TEST(VisibleDevicesTest, UuidsMayBeCutShort) {
  EXPECT_EQ(Visible("GPU-ff000000-0000-0000-0000-000000000000"), Indices({2}));
  EXPECT_EQ(Visible("GPU-ff,GPU-00112244,GPU-00112233"), Indices({2, 1, 0}));
  EXPECT_EQ(Visible("GPU-ff,1"), Indices({2}));
  EXPECT_EQ(Visible("GPU-ff,GPU-001122"), Indices({2})) << "two begin so";
  EXPECT_EQ(Visible("GPU-aa"), Indices());
}

}  // namespace
}  // namespace torpor::shim
