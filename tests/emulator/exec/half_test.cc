// Instructions on f16 and bf16, bit for bit against exact arithmetic.
#include <array>
#include <boost/multiprecision/cpp_int.hpp>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "tests/emulator/exec/row_test.h"

namespace torpor::emulator {
namespace {

using boost::multiprecision::cpp_int;

// A real number in units of 2^-kScale.
using Exact = cpp_int;
constexpr int kScale = 1200;

struct Format {
  int bits;
  int fraction;
  const char* name;

  int bias() const { return (1 << (bits - fraction - 2)) - 1; }
  std::uint64_t sign() const { return std::uint64_t{1} << (bits - 1); }
  std::uint64_t infinity() const { return sign() - (std::uint64_t{1} << fraction); }
  bool IsNan(std::uint64_t x) const { return (x & (sign() - 1)) > infinity(); }
  bool IsFinite(std::uint64_t x) const { return (x & (sign() - 1)) < infinity(); }
  int min_exponent() const { return 1 - bias() - fraction; }  // of a subnormal's unit
};

constexpr Format kF16 = {16, 10, "f16"};
constexpr Format kBf16 = {16, 7, "bf16"};
constexpr Format kDouble = {64, 52, "f64"};

Exact ValueOf(std::uint64_t bits, const Format& format) {
  const std::uint64_t magnitude = bits & (format.sign() - 1);
  const auto exponent = static_cast<int>(magnitude >> format.fraction);
  Exact value = magnitude & ((std::uint64_t{1} << format.fraction) - 1);
  if (exponent != 0) value += std::uint64_t{1} << format.fraction;
  value <<= kScale + format.min_exponent() + std::max(exponent - 1, 0);
  return (bits & format.sign()) == 0 ? value : Exact(-value);
}

// To nearest, ties to even.
std::uint64_t Round(const Exact& value, const Format& format) {
  const Exact magnitude = value < 0 ? Exact(-value) : value;
  const std::uint64_t sign = value < 0 ? format.sign() : 0;
  if (magnitude == 0) return 0;
  const int leading = static_cast<int>(msb(magnitude)) - kScale;
  const int unit = std::max(leading - format.fraction, format.min_exponent());
  const int shift = unit + kScale;
  Exact quotient = magnitude >> shift;
  const Exact rest = magnitude - (quotient << shift);
  const Exact half = Exact(1) << (shift - 1);
  if (rest > half || (rest == half && (quotient & 1) != 0)) ++quotient;
  const auto steps = static_cast<std::uint64_t>(unit - format.min_exponent());
  const auto bits = (steps << format.fraction) + static_cast<std::uint64_t>(quotient);
  return sign | std::min(bits, format.infinity());
}

class HalfTest : public RowTest {
 protected:
  // Finite numbers: of any size, and such that sums meet near the middle between two results.
  std::vector<Row> FiniteRows(const Format& format) {
    std::vector<Row> rows;
    while (rows.size() < 8192) {
      Row row;
      for (std::uint64_t& number : row) {
        do {
          number = random_() & 0xffff;
        } while (!format.IsFinite(number));
      }
      if (rows.size() % 2 == 0) {
        // c far below a * b.
        row[0] = (row[0] & 0x807f) | (static_cast<std::uint64_t>(format.bias()) << format.fraction);
        row[2] &= 0x8000U | ((std::uint64_t{3} << format.fraction) - 1);
      }
      rows.push_back(row);
    }
    return rows;
  }

  std::mt19937_64 random_{7};
};

// The value of a sum that is exactly zero has a sign that these tests leave open.
void ExpectSame(std::uint64_t got, const Exact& exact, const Format& format, const Row& row) {
  const std::uint64_t expected = Round(exact, format);
  if (exact == 0) got &= 0x7fff;
  ASSERT_EQ(got, expected) << format.name << std::hex << " " << row[0] << " " << row[1] << " "
                           << row[2];
}

TEST_F(HalfTest, AFusedMultiplyAddRoundsOnce) {
  for (const Format& format : {kF16, kBf16}) {
    std::vector<Row> rows = FiniteRows(format);
    if (format.fraction == 10) rows[0] = {0x4200, 0x3556, 0x0001};
    const auto out = Run16(std::string("fma.rn.") + format.name + " %hd, %ha, %hb, %hc;", rows);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const Exact product = (ValueOf(rows[i][0], format) * ValueOf(rows[i][1], format)) >> kScale;
      ExpectSame(out[i], product + ValueOf(rows[i][2], format), format, rows[i]);
    }
    if (format.fraction == 10) {
      EXPECT_EQ(out[0], 0x3c01U);
    }
  }
}

TEST_F(HalfTest, BothHalvesOfAPairAreComputed) {
  std::vector<Row> low = FiniteRows(kF16);
  std::vector<Row> high = FiniteRows(kF16);
  std::vector<Row> rows(low.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t k = 0; k < 3; ++k) rows[i][k] = low[i][k] | high[i][k] << 16;
  }
  const auto both = Run32("fma.rn.f16x2 %wd, %wa, %wb, %wc;", rows);
  const auto first = Run16("fma.rn.f16 %hd, %ha, %hb, %hc;", low);
  const auto second = Run16("fma.rn.f16 %hd, %ha, %hb, %hc;", high);
  for (std::size_t i = 0; i < rows.size(); ++i) ASSERT_EQ(both[i], first[i] | second[i] << 16);
}

TEST_F(HalfTest, SumsAndProductsAreExactlyRounded) {
  for (const Format& format : {kF16, kBf16}) {
    const std::vector<Row> rows = FiniteRows(format);
    const std::string type = format.name;
    const auto sums = Run16("add." + type + " %hd, %ha, %hc;", rows);
    const auto products = Run16("mul." + type + " %hd, %ha, %hb;", rows);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const Exact a = ValueOf(rows[i][0], format);
      ExpectSame(sums[i], a + ValueOf(rows[i][2], format), format, rows[i]);
      ExpectSame(products[i], (a * ValueOf(rows[i][1], format)) >> kScale, format, rows[i]);
    }
  }
}

TEST_F(HalfTest, NarrowingDoublesRoundsOnce) {
  for (const Format& format : {kF16, kBf16}) {
    std::vector<Row> rows = {Row{0x3ff0020000000001}};
    while (rows.size() < 8192) {
      // Around the middle between two neighbours.
      const std::uint64_t bits = random_() % (format.infinity() - 1);
      const Exact middle = (ValueOf(bits, format) + ValueOf(bits + 1, format)) / 2;
      rows.push_back({Round(middle, kDouble) + random_() % 3 - 1 + (random_() % 2 << 63)});
    }
    const auto out = Run16(std::string("cvt.rn.") + format.name + ".f64 %hd, %a;", rows);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      ExpectSame(out[i], ValueOf(rows[i][0], kDouble), format, rows[i]);
    }
    if (format.fraction == 10) {
      EXPECT_EQ(out[0], 0x3c01U);
    }
  }
}

TEST_F(HalfTest, NarrowingIntegersRoundsOnce) {
  std::vector<Row> rows = {Row{0x8080000000000001}, Row{0x7f80000000000001}, Row{0x01010001}};
  while (rows.size() < 8192) {
    // Few leading digits, then a half or nearly.
    const std::uint64_t leading = random_() % 512 | 256;
    const unsigned shift = static_cast<unsigned>(random_() % 56);
    const std::uint64_t half = shift == 0 ? 0 : std::uint64_t{1} << (shift - 1);
    const std::uint64_t value = (leading << shift) + half + random_() % 3 - 1;
    rows.push_back({random_() % 2 == 0 ? value : 0 - value});
  }
  for (const Format& format : {kF16, kBf16}) {
    const std::string narrow = std::string("cvt.rn.") + format.name;
    const auto u64 = Run16(narrow + ".u64 %hd, %a;", rows);
    const auto s64 = Run16(narrow + ".s64 %hd, %a;", rows);
    const auto u32 = Run16(narrow + ".u32 %hd, %wa;", rows);
    const auto s32 = Run16(narrow + ".s32 %hd, %wa;", rows);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::uint64_t x = rows[i][0];
      const auto expect = [&](std::uint64_t got, const Exact& value) {
        ExpectSame(got, value << kScale, format, rows[i]);
      };
      expect(u64[i], x);
      expect(s64[i], static_cast<std::int64_t>(x));
      expect(u32[i], static_cast<std::uint32_t>(x));
      expect(s32[i], static_cast<std::int32_t>(x));
    }
  }
}

// The greatest number of the format that is not above, or the lowest that is not below.
std::uint64_t RoundTo(const Exact& value, const Format& format, bool up) {
  const std::uint64_t near = Round(value, format);
  if (format.IsFinite(near) && ValueOf(near, format) == value) return near;
  const bool negative = value < 0;
  const std::uint64_t sign = negative ? format.sign() : 0;
  const Exact magnitude = negative ? Exact(-value) : value;
  std::uint64_t low = Round(magnitude, format);
  if (low == format.infinity() || ValueOf(low, format) > magnitude) --low;
  return sign | (up == negative ? low : low + 1);
}

TEST_F(HalfTest, NarrowingRoundsInTheGivenDirection) {
  for (const Format& format : {kF16, kBf16}) {
    std::vector<Row> rows;
    while (rows.size() < 4096) {
      const std::uint64_t bits = random_() % (format.infinity() - 1);
      const Exact third = (ValueOf(bits, format) * 2 + ValueOf(bits + 1, format)) / 3;
      const std::uint64_t inner =
          rows.size() % 4 == 0 ? Round(ValueOf(bits, format), kDouble) : Round(third, kDouble);
      rows.push_back({inner | (random_() % 2 << 63)});
    }
    rows.push_back({0x7fe0000000000000});
    rows.push_back({0xffe0000000000000});
    const auto narrow = [&](const char* rounding) {
      return Run16(std::string("cvt.") + rounding + "." + format.name + ".f64 %hd, %a;", rows);
    };
    const auto down = narrow("rm");
    const auto up = narrow("rp");
    const auto to_zero = narrow("rz");
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const Exact value = ValueOf(rows[i][0], kDouble);
      if (value == 0) continue;
      ASSERT_EQ(down[i], RoundTo(value, format, false)) << std::hex << rows[i][0];
      ASSERT_EQ(up[i], RoundTo(value, format, true)) << std::hex << rows[i][0];
      ASSERT_EQ(to_zero[i], RoundTo(value, format, value < 0)) << std::hex << rows[i][0];
    }
  }
}

TEST_F(HalfTest, NanAndReluAndSaturation) {
  const auto one = [&](const std::string& body, const Row& row) { return Run16(body, {row})[0]; };
  EXPECT_EQ(one("fma.rn.relu.f16 %hd, %ha, %hb, %hc;", {0x7e01, 0x3c00, 0}), 0x7fffU);
  EXPECT_EQ(one("fma.rn.relu.bf16 %hd, %ha, %hb, %hc;", {0xffc1, 0x3f80, 0}), 0x7fffU);
  EXPECT_EQ(one("fma.rn.relu.f16 %hd, %ha, %hb, %hc;", {0xbc00, 0x3c00, 0}), 0U);
  EXPECT_EQ(one("fma.rn.relu.f16 %hd, %ha, %hb, %hc;", {0x4000, 0x3c00, 0}), 0x4000U);
  EXPECT_EQ(one("fma.rn.sat.f16 %hd, %ha, %hb, %hc;", {0x7e01, 0x3c00, 0}), 0U);
  EXPECT_EQ(one("add.f16 %hd, %ha, %hb;", {0x7c00, 0xfc00}), 0x7fffU);
  EXPECT_EQ(one("add.ftz.f16 %hd, %ha, %hb;", {0x83ff, 0x8000}), 0x8000U);
  EXPECT_EQ(one("sub.ftz.f16 %hd, %ha, %hb;", {0x0401, 0x0400}), 0U);
  EXPECT_EQ(one("cvt.rn.relu.f16.f32 %hd, %wa;", {0xffc00001}), 0x7fffU);
  EXPECT_EQ(one("cvt.rn.relu.bf16.f32 %hd, %wa;", {0xc0000000}), 0U);
  EXPECT_EQ(one("cvt.rn.satfinite.f16.f32 %hd, %wa;", {0x40a00000}), 0x4500U);
  EXPECT_EQ(one("cvt.rn.satfinite.f16.f32 %hd, %wa;", {0x7f800000}), 0x7bffU);
  EXPECT_EQ(one("cvt.rn.satfinite.f16.f32 %hd, %wa;", {0xc7800000}), 0xfbffU);
  EXPECT_EQ(one("cvt.rn.satfinite.f16.f32 %hd, %wa;", {0xffc00000}), 0x7fffU);
  EXPECT_EQ(one("cvt.rn.satfinite.bf16.f32 %hd, %wa;", {0x7f7fffff}), 0x7f7fU);
  EXPECT_EQ(one("cvt.rn.satfinite.bf16.f32 %hd, %wa;", {0xff800000}), 0xff7fU);
}

TEST_F(HalfTest, ModifiersThatOnlyHalvesHaveAreRefusedElsewhere) {
  for (const char* body : {"cvt.rn.satfinite.f32.f64 %wd, %a;", "cvt.rn.relu.f32.f64 %wd, %a;"}) {
    LoadBody(std::string(".reg .b64 %a; .reg .b32 %wd; ") + body);
    const auto result = program_->Preload("k", {32, 1, 1});
    ASSERT_FALSE(result) << body;
    EXPECT_EQ(result.failure().code, ExecError::kUnsupported);
  }
}

TEST_F(HalfTest, ExtremesOfMagnitudesTakeTheSignOfTheProduct) {
  const auto one = [&](const std::string& body, const Row& row) { return Run16(body, {row})[0]; };
  EXPECT_EQ(one("min.xorsign.abs.f16 %hd, %ha, %hb;", {0xc200, 0x4000}), 0xc000U);
  EXPECT_EQ(one("max.xorsign.abs.f16 %hd, %ha, %hb;", {0xc200, 0xc000}), 0x4200U);
  EXPECT_EQ(one("max.xorsign.abs.bf16 %hd, %ha, %hb;", {0xc040, 0x7fc0}), 0xc040U);
  EXPECT_EQ(one("max.NaN.xorsign.abs.f16 %hd, %ha, %hb;", {0xc200, 0x7e00}), 0x7fffU);
  EXPECT_EQ(one("min.f16 %hd, %ha, %hb;", {0x0000, 0x8000}), 0x8000U);
  EXPECT_EQ(one("max.f16 %hd, %ha, %hb;", {0x8000, 0x0000}), 0x0000U);
  EXPECT_EQ(one("min.NaN.f16 %hd, %ha, %hb;", {0x7c01, 0x0000}), 0x7fffU);
  EXPECT_EQ(Run32("min.xorsign.abs.f32 %wd, %wa, %wb;", {Row{0xc0400000, 0x40000000}})[0],
            0xc0000000U);
}

// What `set.OPERATOR` finds of two numbers.
bool Holds(const std::string& name, double a, double b) {
  const bool unordered = std::isnan(a) || std::isnan(b);
  if (name == "num") return !unordered;
  if (name == "nan") return unordered;
  const std::string relation = name.substr(0, 2);
  if (unordered) return name.size() == 3;
  return relation == "eq"   ? a == b
         : relation == "ne" ? a != b
         : relation == "lt" ? a < b
         : relation == "le" ? a <= b
         : relation == "gt" ? a > b
                            : a >= b;
}

double ToDouble(std::uint64_t bits, const Format& format, bool flush) {
  if (format.IsNan(bits)) return std::nan("");
  const std::uint64_t magnitude = bits & 0x7fff;
  double value = static_cast<double>(magnitude & ((1U << format.fraction) - 1));
  const auto exponent = static_cast<int>(magnitude >> format.fraction);
  if (exponent != 0) value += 1 << format.fraction;
  if (magnitude == format.infinity()) value = INFINITY;
  if (exponent == 0 && flush) value = 0;
  value = std::ldexp(value, format.min_exponent() + std::max(exponent - 1, 0));
  return (bits & 0x8000) == 0 ? value : -value;
}

class ComparisonTest : public HalfTest {
 protected:
  void Check(const Format& format, const std::string& name, const std::vector<Row>& rows) {
    const bool flush = format.fraction == 10 && name < "h";
    const std::string type = format.name;
    const std::string operation = "set." + name;
    const std::string ftz = flush ? ".ftz." : ".";
    const std::string predicate = "setp.ne.u32 %p, %wc, 0; " + operation;
    const auto pairs =
        Run32(predicate + ".and" + ftz + type + "x2." + type + "x2 %wd, %wa, %wb, %p;", rows);
    const auto masks =
        Run32(predicate + ".xor" + ftz + "u32." + type + "x2 %wd, %wa, %wb, %p;", rows);
    const auto single = Run16(operation + ftz + type + "." + type + " %hd, %ha, %hb;", rows);
    const auto word = Run32(operation + ftz + "u32." + type + " %wd, %ha, %hb;", rows);
    const auto predicates = Run32("setp." + name + ftz + type +
                                      "x2 %p|%q, %wa, %wb; selp.u32 %wd, 1, 0, %p;"
                                      " @%q add.u32 %wd, %wd, 2;",
                                  rows);
    const std::uint64_t one = One(format);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const double x = ToDouble(rows[i][0] & 0xffff, format, flush);
      const double y = ToDouble(rows[i][0] >> 16, format, flush);
      const std::uint64_t low = Holds(name, x, y) ? 1 : 0;
      const std::uint64_t high = Holds(name, y, x) ? 1 : 0;
      const std::uint64_t c = rows[i][2] != 0 ? 1 : 0;
      ASSERT_EQ(pairs[i], ((low & c) | (high & c) << 16) * one) << name << " " << x << " " << y;
      ASSERT_EQ(masks[i], ((low ^ c) | (high ^ c) << 16) * 0xffff) << name << " " << x << " " << y;
      ASSERT_EQ(single[i], low * one) << name << " " << x << " " << y;
      ASSERT_EQ(word[i], low * 0xffffffff) << name << " " << x << " " << y;
      ASSERT_EQ(predicates[i], low | high << 1) << name << " " << x << " " << y;
    }
  }

  static std::uint64_t One(const Format& format) {
    return static_cast<std::uint64_t>(format.bias()) << format.fraction;
  }
};

TEST_F(ComparisonTest, LooksAtEachHalf) {
  for (const Format& format : {kF16, kBf16}) {
    const std::uint64_t infinity = format.infinity();
    const std::uint64_t one = One(format);
    const std::vector<std::uint64_t> numbers = {0,
                                                0x8000,
                                                1,
                                                0x8001,
                                                one,
                                                one + 0x8000,
                                                one + 1,
                                                infinity,
                                                infinity + 0x8000,
                                                infinity + 1,
                                                0xffff};
    std::vector<Row> rows;
    for (const std::uint64_t x : numbers) {
      for (const std::uint64_t y : numbers) {
        rows.push_back({x | y << 16, y | x << 16, rows.size() % 3});
      }
    }
    for (const char* name : {"eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu",
                             "geu", "num", "nan"}) {
      Check(format, name, rows);
    }
  }
}

}  // namespace
}  // namespace torpor::emulator
