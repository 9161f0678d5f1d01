#include "emulator/exec/texture/surface_access.h"

#include <gtest/gtest.h>

#include <vector>

namespace torpor::emulator {
namespace {

// 4 x 3 x 2 texels of four bytes.
class SurfaceAccessTest : public testing::Test {
 protected:
  SurfaceAccessTest() {
    surface_.format = {ChannelType::kUnsigned8, 4};
    surface_.level = {memory_.data(), 4, 3, 2, 16, 48};
  }

  // Offset in the memory; -1: nowhere, -2: an error.
  int Offset(std::array<std::int32_t, 3> at, SurfaceBounds bounds, std::uint32_t bytes = 4,
             TextureGeometry geometry = TextureGeometry::k3d, std::int32_t layer = 0) {
    const SurfacePlace place = Locate(surface_, {geometry, bounds, layer, at, bytes});
    if (place.is_error) return -2;
    return place.bytes == nullptr ? -1 : static_cast<int>(place.bytes - memory_.data());
  }

  std::vector<std::uint8_t> memory_ = std::vector<std::uint8_t>(96);
  Surface surface_;
};

TEST_F(SurfaceAccessTest, TheFirstCoordinateCountsBytes) {
  EXPECT_EQ(Offset({8, 2, 1}, SurfaceBounds::kTrap), 48 + 32 + 8);
  EXPECT_EQ(Offset({8, 2, 1}, SurfaceBounds::kTrap, 4, TextureGeometry::k2d), 32 + 8);
  EXPECT_EQ(Offset({8, 2, 1}, SurfaceBounds::kTrap, 4, TextureGeometry::k1d), 8);
  EXPECT_EQ(Offset({8, 2, 0}, SurfaceBounds::kTrap, 4, TextureGeometry::kLayered2d, 1),
            48 + 32 + 8);
  EXPECT_EQ(Offset({8, 0, 0}, SurfaceBounds::kTrap, 4, TextureGeometry::kLayered1d, 1), 48 + 8);
  EXPECT_EQ(Offset({11, 0, 0}, SurfaceBounds::kTrap), 8) << "rounded down to the access's size";
}

TEST_F(SurfaceAccessTest, OutsideItDoesWhatTheInstructionSays) {
  const std::array<std::int32_t, 3> outside[] = {
      {16, 0, 0}, {-4, 0, 0}, {0, 3, 0}, {0, -1, 0}, {0, 0, 2}, {0, 0, -1}, {INT32_MIN, 0, 0}};
  const int nearest[] = {12, 0, 32, 0, 48, 0, 0};
  for (std::size_t i = 0; i < std::size(outside); ++i) {
    EXPECT_EQ(Offset(outside[i], SurfaceBounds::kTrap), -2);
    EXPECT_EQ(Offset(outside[i], SurfaceBounds::kZero), -1);
    EXPECT_EQ(Offset(outside[i], SurfaceBounds::kClamp), nearest[i]);
  }
  EXPECT_EQ(Offset({INT32_MAX, INT32_MAX, INT32_MAX}, SurfaceBounds::kClamp, 16), 48 + 32);
  EXPECT_EQ(Offset({0, 0, 0}, SurfaceBounds::kTrap, 4, TextureGeometry::kLayered2d, 2), -2);
}

TEST_F(SurfaceAccessTest, AnAccessWiderThanARowIsNowhere) {
  surface_.level.width = 1;
  EXPECT_EQ(Offset({0, 0, 0}, SurfaceBounds::kTrap, 8), -2);
  EXPECT_EQ(Offset({0, 0, 0}, SurfaceBounds::kClamp, 8), -1);
}

}  // namespace
}  // namespace torpor::emulator
