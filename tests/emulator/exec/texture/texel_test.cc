#include "emulator/exec/texture/texel.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace torpor::emulator {
namespace {

Texture TextureOf(ChannelType type, std::uint32_t channels, bool normalized = false) {
  Texture texture;
  texture.format = {type, channels};
  texture.has_normalized_values = normalized;
  return texture;
}

template <typename T>
Texel Read(const Texture& texture, std::array<T, 4> channels) {
  return ReadTexel(texture, reinterpret_cast<const std::uint8_t*>(channels.data()));
}

TEST(Texel, IntegersKeepTheirSign) {
  EXPECT_EQ(Read<std::int8_t>(TextureOf(ChannelType::kSigned8, 4), {-1, 2, -128, 127}),
            (Texel{0xffffffff, 2, 0xffffff80, 127}));
  EXPECT_EQ(Read<std::uint16_t>(TextureOf(ChannelType::kUnsigned16, 2), {0xffff, 7, 9, 9}),
            (Texel{0xffff, 7, 0, 1}));
  EXPECT_EQ(Read<std::uint32_t>(TextureOf(ChannelType::kUnsigned32, 1), {0xdeadbeef, 9, 9, 9}),
            (Texel{0xdeadbeef, 0, 0, 1}));
}

TEST(Texel, NormalisedValuesAreFractionsOfTheLargest) {
  const auto floats = [](const Texel& texel) { return std::bit_cast<FloatTexel>(texel); };
  EXPECT_EQ(
      floats(Read<std::uint8_t>(TextureOf(ChannelType::kUnsigned8, 4, true), {0, 51, 255, 1})),
      (FloatTexel{0, 0.2F, 1, 1 / 255.0F}));
  EXPECT_EQ(floats(Read<std::int16_t>(TextureOf(ChannelType::kSigned16, 4, true),
                                      {-32768, -32767, 32767, 0})),
            (FloatTexel{-1, -1, 1, 0}));
}

TEST(Texel, SrgbIsMadeLinearButForAlpha) {
  Texture texture = TextureOf(ChannelType::kUnsigned8, 4, true);
  texture.is_srgb = true;
  const auto linear = std::bit_cast<FloatTexel>(Read<std::uint8_t>(texture, {0, 255, 128, 128}));
  EXPECT_EQ(linear[0], 0);
  EXPECT_EQ(linear[1], 1);
  EXPECT_NEAR(linear[2], 0.2158605, 1e-6);
  EXPECT_EQ(linear[3], 128 / 255.0F);
}

TEST(Texel, EveryHalfSurvivesBeingReadAndWritten) {
  const Texture texture = TextureOf(ChannelType::kHalf, 1);
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const Texel texel = Read<std::uint16_t>(texture, {half});
    const auto value = std::bit_cast<float>(texel[0]);
    const int exponent = (half >> 10) & 31;
    const double magnitude = exponent == 0 ? std::ldexp(half & 0x3ff, -24)
                                           : std::ldexp(1 + (half & 0x3ff) / 1024.0, exponent - 15);
    if (exponent == 31) {
      EXPECT_EQ(std::isnan(value), (half & 0x3ff) != 0);
    } else {
      EXPECT_EQ(value, (half & 0x8000) != 0 ? -magnitude : magnitude);
    }
    std::uint16_t written = 0;
    WriteTexel(texture.format, texel, reinterpret_cast<std::uint8_t*>(&written));
    if (!std::isnan(value)) {
      EXPECT_EQ(written, half);
    }
  }
}

TEST(Texel, HalvesAreRoundedToNearestEven) {
  const TexelFormat format = {ChannelType::kHalf, 1};
  const auto written = [&](float value) {
    std::uint16_t half = 0;
    WriteTexel(format, {std::bit_cast<std::uint32_t>(value)},
               reinterpret_cast<std::uint8_t*>(&half));
    return half;
  };
  EXPECT_EQ(written(1 + 1 / 2048.0F), 0x3c00);
  EXPECT_EQ(written(1 + 3 / 2048.0F), 0x3c02);
  EXPECT_EQ(written(65519), 0x7bff);
  EXPECT_EQ(written(65520), 0x7c00);
  EXPECT_EQ(written(-1e9F), 0xfc00);
  EXPECT_EQ(written(std::ldexp(1.0F, -25)), 0);
  EXPECT_EQ(written(std::ldexp(1.5F, -25)), 1);
  EXPECT_EQ(written(std::ldexp(2047.0F, -25)), 0x400) << "rounded up to the least normal number";
}

TEST(Texel, IntegersThatAreStoredAreLimited) {
  std::array<std::uint8_t, 4> bytes = {};
  WriteTexel({ChannelType::kUnsigned8, 4}, {300, 7, 255, 0xffffffff}, bytes.data());
  EXPECT_EQ(bytes, (std::array<std::uint8_t, 4>{255, 7, 255, 255}));
  WriteTexel({ChannelType::kSigned8, 2}, {static_cast<std::uint32_t>(-300), 300}, bytes.data());
  EXPECT_EQ(bytes[0], 0x80);
  EXPECT_EQ(bytes[1], 0x7f);
}

TEST(Texel, TheBorderOfIntegersIsAnInteger) {
  Texture texture = TextureOf(ChannelType::kSigned32, 4);
  texture.border = {-2, 3.9F, 1e20F, std::numeric_limits<float>::quiet_NaN()};
  const Texel border = BorderTexel(texture);
  EXPECT_EQ(border[0], 0xfffffffe);
  EXPECT_EQ(border[1], 3U);
}

}  // namespace
}  // namespace torpor::emulator
