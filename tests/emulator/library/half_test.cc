#include "emulator/library/half.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

namespace torpor::emulator {
namespace {

std::uint16_t ToHalf(float value) {
  std::uint16_t half = 0;
  FloatToHalf(&value, &half, 1);
  return half;
}

TEST(HalfTest, EveryHalfSurvives) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    float value = 0;
    HalfToFloat(&half, &value, 1);
    if (std::isnan(value)) continue;
    ASSERT_EQ(ToHalf(value), half) << bits;
  }
}

TEST(HalfTest, RoundsToNearestEven) {
  EXPECT_EQ(ToHalf(1.0F), 0x3c00);
  EXPECT_EQ(ToHalf(1.0F + 0x1p-11F), 0x3c00);
  EXPECT_EQ(ToHalf(1.0F + 0x3p-11F), 0x3c02);
  EXPECT_EQ(ToHalf(65519.0F), 0x7bff);
  EXPECT_EQ(ToHalf(65520.0F), 0x7c00);
  EXPECT_EQ(ToHalf(-0x1p-25F), 0x8000);
  EXPECT_EQ(ToHalf(0x1.8p-25F), 0x0001);
  EXPECT_EQ(ToHalf(std::numeric_limits<float>::infinity()), 0x7c00);
}

// The vector path, where the CPU has it, and the scalar one agree.
TEST(HalfTest, ArraysAgreeWithSingles) {
  std::vector<float> values;
  constexpr int kSteps = 110;  // from 1e-9 to 1e6
  float value = 1e-9F;
  for (int step = 0; step < kSteps; ++step, value *= 1.37F) {
    values.push_back(value);
    values.push_back(-value);
  }
  std::vector<std::uint16_t> halves(values.size());
  FloatToHalf(values.data(), halves.data(), values.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_EQ(halves[i], ToHalf(values[i])) << values[i];
  std::vector<float> back(values.size());
  HalfToFloat(halves.data(), back.data(), halves.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    float single = 0;
    HalfToFloat(&halves[i], &single, 1);
    ASSERT_EQ(back[i], single);
  }
}

TEST(HalfTest, Bfloat16) {
  const std::array<float, 3> values = {1.0F, 1.0F + 0x1p-8F, std::nanf("")};
  std::array<std::uint16_t, 3> narrow{};
  FloatToBfloat16(values.data(), narrow.data(), 3);
  EXPECT_EQ(narrow[0], 0x3f80);
  EXPECT_EQ(narrow[1], 0x3f80);
  std::array<float, 3> wide{};
  Bfloat16ToFloat(narrow.data(), wide.data(), 3);
  EXPECT_TRUE(std::isnan(wide[2]));
}

}  // namespace
}  // namespace torpor::emulator
