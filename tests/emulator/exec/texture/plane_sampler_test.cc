#include "emulator/exec/texture/plane_sampler.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "emulator/exec/texture/texture_sampler.h"

namespace torpor::emulator {
namespace {

constexpr std::uint32_t kWidth = 13;
constexpr std::uint32_t kHeight = 7;

// A plane of random texels.
class PlaneSamplerTest : public ::testing::Test {
 protected:
  PlaneSamplerTest() : bytes_(std::size_t{kWidth} * kHeight * 16) {
    auto* const floats = reinterpret_cast<float*>(bytes_.data());
    std::uniform_real_distribution<float> values(-100, 100);
    for (std::size_t i = 0; i < bytes_.size() / sizeof(float); ++i) floats[i] = values(random_);
  }

  Texture Make(ChannelType type, std::uint32_t channels) {
    Texture texture;
    texture.format = {type, channels};
    TextureLevel level;
    level.data = bytes_.data();
    level.width = kWidth;
    level.height = kHeight;
    level.row_pitch = Bytes{kWidth} * texture.format.bytes();
    texture.levels.push_back(level);
    return texture;
  }

  TextureLanes MakeLanes(float extent) {
    TextureLanes lanes = {};
    std::uniform_real_distribution<float> coordinates(-3 * extent, 4 * extent);
    for (auto& input : lanes.inputs) {
      for (std::uint32_t& bits : input) bits = std::bit_cast<std::uint32_t>(coordinates(random_));
    }
    constexpr float kOdd[] = {std::numeric_limits<float>::quiet_NaN(), HUGE_VALF, -HUGE_VALF, 1e30F,
                              -0.0F};
    for (std::size_t i = 0; i < std::size(kOdd); ++i) {
      lanes.inputs[i % 2][i] = std::bit_cast<std::uint32_t>(kOdd[i]);
    }
    return lanes;
  }

  void ExpectAsSample(const Texture& texture) {
    constexpr std::uint32_t kMask = 0xfffffff7;
    TextureLanes lanes = MakeLanes(texture.has_normalized_coordinates ? 1 : kWidth);
    ASSERT_TRUE(SamplePlane(texture, kMask, lanes));
    for (std::uint32_t lane = 0; lane < kWarpLanes; ++lane) {
      SampleRequest request;
      request.coordinates = {std::bit_cast<float>(lanes.inputs[0][lane]),
                             std::bit_cast<float>(lanes.inputs[1][lane]), 0};
      const Texel texel = ((kMask >> lane) & 1) != 0 ? Sample(texture, request) : Texel{};
      for (std::size_t i = 0; i < texel.size(); ++i) {
        EXPECT_EQ(lanes.components[i][lane], texel[i]) << "lane " << lane << ", component " << i;
      }
    }
  }

  std::mt19937 random_;
  std::vector<std::uint8_t> bytes_;
};

TEST_F(PlaneSamplerTest, GivesWhatSampleGives) {
  for (const ChannelType type : {ChannelType::kFloat, ChannelType::kUnsigned8}) {
    for (const std::uint32_t channels : {1U, 2U, 4U}) {
      for (const AddressMode mode :
           {AddressMode::kWrap, AddressMode::kClamp, AddressMode::kMirror}) {
        for (const unsigned flags : {0U, 1U, 2U, 3U}) {
          SCOPED_TRACE(testing::Message()
                       << "type " << static_cast<int>(type) << ", channels " << channels
                       << ", mode " << static_cast<int>(mode) << ", flags " << flags);
          Texture texture = Make(type, channels);
          texture.has_normalized_values = type == ChannelType::kUnsigned8;
          texture.address = {mode, mode, mode};
          texture.filters = (flags & 1) != 0;
          texture.has_normalized_coordinates = (flags & 2) != 0;
          ExpectAsSample(texture);
        }
      }
    }
  }
}

TEST_F(PlaneSamplerTest, LeavesOtherTexturesAlone) {
  TextureLanes lanes = MakeLanes(1);
  Texture border = Make(ChannelType::kFloat, 1);
  border.address[1] = AddressMode::kBorder;
  Texture levels = Make(ChannelType::kFloat, 1);
  levels.levels.push_back(levels.levels[0]);
  Texture srgb = Make(ChannelType::kUnsigned8, 4);
  srgb.has_normalized_values = true;
  srgb.is_srgb = true;
  const Texture integers = Make(ChannelType::kUnsigned8, 4);
  const Texture halves = Make(ChannelType::kHalf, 4);
  for (const Texture& texture : {border, levels, srgb, integers, halves}) {
    EXPECT_FALSE(SamplePlane(texture, ~0U, lanes));
    EXPECT_EQ(lanes.components[3][0], 0U);
  }
}

}  // namespace
}  // namespace torpor::emulator
