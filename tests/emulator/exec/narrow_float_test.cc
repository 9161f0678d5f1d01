// Conversions from and to 8-bit floats and tf32, against a search among all numbers of the format.
#include <bit>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "tests/emulator/exec/row_test.h"

namespace torpor::emulator {
namespace {

struct ByteFormat {
  const char* name;
  int fraction_bits;
  int bias;
  std::uint64_t largest;
};

constexpr ByteFormat kE4m3 = {"e4m3", 3, 7, 0x7e};
constexpr ByteFormat kE5m2 = {"e5m2", 2, 15, 0x7b};

double ValueOf(std::uint64_t byte, const ByteFormat& format) {
  const std::uint64_t magnitude = byte & 0x7f;
  if (magnitude > format.largest) {
    const bool infinite = format.fraction_bits == 2 && magnitude == 0x7c;
    return std::copysign(infinite ? INFINITY : NAN, (byte & 0x80) == 0 ? 1.0 : -1.0);
  }
  const auto exponent = static_cast<int>(magnitude >> format.fraction_bits);
  auto fraction = static_cast<double>(magnitude & ((1U << format.fraction_bits) - 1));
  if (exponent != 0) fraction += 1 << format.fraction_bits;
  const double value =
      std::ldexp(fraction, std::max(exponent, 1) - format.bias - format.fraction_bits);
  return (byte & 0x80) == 0 ? value : -value;
}

// The nearest one; of two as near, the even one.
std::uint64_t Nearest(float value, const ByteFormat& format) {
  if (std::isnan(value)) return 0x7f;
  const std::uint64_t sign = std::signbit(value) ? 0x80 : 0;
  const double magnitude = std::fabs(static_cast<double>(value));
  std::uint64_t best = 0;
  for (std::uint64_t byte = 0; byte <= format.largest; ++byte) {
    const double distance = std::fabs(ValueOf(byte, format) - magnitude);
    const double so_far = std::fabs(ValueOf(best, format) - magnitude);
    if (distance < so_far || (distance == so_far && byte % 2 == 0)) best = byte;
  }
  // What is far beyond is as near to all.
  return sign | (magnitude > ValueOf(format.largest, format) ? format.largest : best);
}

class NarrowFloatTest : public RowTest {
 protected:
  std::mt19937_64 random_{3};
};

TEST_F(NarrowFloatTest, BytesBecomeHalves) {
  for (const ByteFormat& format : {kE4m3, kE5m2}) {
    std::vector<Row> rows;
    for (std::uint64_t byte = 0; byte < 256; ++byte) rows.push_back({byte | (byte ^ 0x55) << 8});
    const auto halves = Run32(std::string("cvt.rn.f16x2.") + format.name + "x2 %wd, %ha;", rows);
    const auto low =
        Run("{ .reg .b16 %lo, %hi; mov.b32 {%lo, %hi}, %wa; cvt.f64.f16 %d, %lo; }", [&] {
          std::vector<Row> words;
          words.reserve(halves.size());
          for (const std::uint64_t word : halves) words.push_back({word});
          return words;
        }());
    for (std::uint64_t byte = 0; byte < 256; ++byte) {
      const double expected = ValueOf(byte, format);
      const auto value = std::bit_cast<double>(low[byte]);
      if (std::isnan(expected)) {
        EXPECT_EQ(halves[byte] & 0xffff, 0x7fffU);
      } else {
        EXPECT_EQ(value, expected) << format.name << " " << byte;
      }
      EXPECT_EQ(halves[byte] >> 16, halves[byte ^ 0x55] & 0xffff);
    }
  }
}

TEST_F(NarrowFloatTest, FloatsBecomeBytes) {
  for (const ByteFormat& format : {kE4m3, kE5m2}) {
    std::vector<float> numbers = {0.0F, -0.0F, INFINITY, -INFINITY, NAN, 1e30F, -1e30F, 1e-30F};
    for (std::uint64_t byte = 0; byte < format.largest; ++byte) {
      const auto middle =
          static_cast<float>((ValueOf(byte, format) + ValueOf(byte + 1, format)) / 2);
      for (const float toward : {-INFINITY, middle, INFINITY}) {
        const float number = std::nextafter(middle, toward);
        numbers.push_back(random_() % 2 == 0 ? number : -number);
      }
    }
    std::vector<Row> rows;
    rows.reserve(numbers.size());
    for (const float number : numbers) {
      rows.push_back({std::bit_cast<std::uint32_t>(number), std::bit_cast<std::uint32_t>(2.0F)});
    }
    const std::string name = std::string("cvt.rn.satfinite.") + format.name + "x2.f32 %hd, ";
    const auto low = Run16(name + "%wb, %wa;", rows);
    const auto high = Run16(name + "%wa, %wb;", rows);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const std::uint64_t expected = Nearest(numbers[i], format);
      const std::uint64_t two = Nearest(2.0F, format);
      EXPECT_EQ(low[i], two << 8 | expected) << format.name << " " << numbers[i];
      EXPECT_EQ(high[i], expected << 8 | two) << format.name << " " << numbers[i];
    }
  }
}

TEST_F(NarrowFloatTest, HalvesBecomeBytesAndReluDropsNegativeOnes) {
  const std::vector<Row> rows = {{0x3c00c000}, {0xfbff7bff}, {0x00010001}};
  const auto plain = Run16("cvt.rn.satfinite.e4m3x2.f16x2 %hd, %wa;", rows);
  EXPECT_EQ(plain[0], 0x38c0U);
  EXPECT_EQ(plain[1], 0xfe7eU);
  EXPECT_EQ(plain[2], 0U);
  const auto relu = Run16("cvt.rn.satfinite.relu.e4m3x2.f16x2 %hd, %wa;", rows);
  EXPECT_EQ(relu[0], 0x3800U);
  EXPECT_EQ(relu[1], 0x007eU);
}

TEST_F(NarrowFloatTest, Tf32KeepsTenBitsOfTheFraction) {
  std::vector<Row> rows = {{0x7f800000}, {0xff800000}, {0x7fc00001}, {0x7f7fffff}, {0x00001000}};
  while (rows.size() < 2048) {
    // Around the middle between two.
    rows.push_back({(random_() & 0xffffe000) + 0x1000 + random_() % 3 - 1});
  }
  const auto away = Run32("cvt.rna.tf32.f32 %wd, %wa;", rows);
  const auto even = Run32("cvt.rn.tf32.f32 %wd, %wa;", rows);
  const auto cut = Run32("cvt.rz.tf32.f32 %wd, %wa;", rows);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto number = std::bit_cast<float>(static_cast<std::uint32_t>(rows[i][0]));
    if (std::isnan(number) || std::isinf(number)) {
      EXPECT_EQ(away[i], std::isnan(number) ? 0x7fffffffU : rows[i][0]);
      continue;
    }
    const std::uint64_t below = rows[i][0] & ~std::uint64_t{0x1fff};
    const std::uint64_t rest = rows[i][0] & 0x1fff;
    const bool odd = (below & 0x2000) != 0;
    EXPECT_EQ(cut[i], below);
    EXPECT_EQ(away[i], rest >= 0x1000 ? below + 0x2000 : below) << std::hex << rows[i][0];
    EXPECT_EQ(even[i], rest > 0x1000 || (rest == 0x1000 && odd) ? below + 0x2000 : below);
  }
}

}  // namespace
}  // namespace torpor::emulator
