// Words as fields and as masks: video instructions on pairs and quadruples, and fns.
#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "tests/emulator/exec/row_test.h"

namespace torpor::emulator {
namespace {

std::int64_t Field(std::uint64_t word, unsigned index, unsigned bits, bool is_signed) {
  const std::uint64_t field = (word >> (index * bits)) & ((std::uint64_t{1} << bits) - 1);
  const bool negative = is_signed && (field >> (bits - 1)) != 0;
  return static_cast<std::int64_t>(field) - (negative ? std::int64_t{1} << bits : 0);
}

std::int64_t Compute(const std::string& operation, std::int64_t a, std::int64_t b) {
  if (operation == "add") return a + b;
  if (operation == "sub") return a - b;
  if (operation == "absdiff") return std::llabs(a - b);
  if (operation == "min") return std::min(a, b);
  if (operation == "max") return std::max(a, b);
  const std::int64_t sum = a + b;  // avrg
  return (sum + (sum >= 0 ? 1 : 0)) >> 1;
}

class PackedBitsTest : public RowTest {
 protected:
  std::vector<Row> RandomRows() {
    std::vector<Row> rows;
    while (rows.size() < 256) {
      const std::uint64_t a = random_();
      // Half of the fields equal.
      rows.push_back({a & 0xffffffff,
                      (random_() % 2 == 0 ? a ^ (random_() & 0xff00ff) : random_()) & 0xffffffff,
                      random_() & 0xffffffff});
    }
    return rows;
  }

  void Check(const std::string& operation, unsigned fields, bool is_signed, bool saturates,
             bool adds) {
    const std::string type = is_signed ? ".s32" : ".u32";
    const std::string name = "v" + operation + std::to_string(fields) + type + type + type +
                             (saturates ? ".sat" : "") + (adds ? ".add" : "");
    SCOPED_TRACE(name);
    const std::vector<Row> rows = RandomRows();
    const auto out = Run32(name + " %wd, %wa, %wb, %wc;", rows);
    const unsigned bits = 32 / fields;
    const std::int64_t half = std::int64_t{1} << (bits - 1);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      std::uint64_t expected = adds ? rows[i][2] : 0;
      for (unsigned k = 0; k < fields; ++k) {
        std::int64_t value = Compute(operation, Field(rows[i][0], k, bits, is_signed),
                                     Field(rows[i][1], k, bits, is_signed));
        if (saturates) {
          value = is_signed ? std::clamp(value, -half, half - 1)
                            : std::clamp<std::int64_t>(value, 0, 2 * half - 1);
        }
        if (adds) {
          expected += static_cast<std::uint64_t>(value);
        } else {
          expected |= (static_cast<std::uint64_t>(value) & ((std::uint64_t{1} << bits) - 1))
                      << (k * bits);
        }
      }
      ASSERT_EQ(out[i], expected & 0xffffffff) << std::hex << rows[i][0] << " " << rows[i][1];
    }
  }

  std::mt19937_64 random_{5};
};

TEST_F(PackedBitsTest, ComputesEachField) {
  for (const char* operation : {"add", "sub", "absdiff", "min", "max", "avrg"}) {
    for (const unsigned fields : {2, 4}) {
      for (const bool is_signed : {false, true}) {
        Check(operation, fields, is_signed, false, false);
        Check(operation, fields, is_signed, true, false);
        Check(operation, fields, is_signed, false, true);
      }
    }
  }
}

TEST_F(PackedBitsTest, ComparesEachField) {
  const std::vector<Row> rows = RandomRows();
  const auto less = Run32("vset4.u32.u32.lt %wd, %wa, %wb, %wc;", rows);
  const auto equal = Run32("vset4.u32.u32.eq.add %wd, %wa, %wb, %wc;", rows);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::uint64_t expected = 0;
    std::uint64_t count = rows[i][2];
    for (unsigned k = 0; k < 4; ++k) {
      const std::int64_t a = Field(rows[i][0], k, 8, false);
      const std::int64_t b = Field(rows[i][1], k, 8, false);
      expected |= std::uint64_t{a < b ? 1U : 0U} << (8 * k);
      count += a == b ? 1 : 0;
    }
    ASSERT_EQ(less[i], expected);
    ASSERT_EQ(equal[i], count & 0xffffffff);
  }
}

TEST_F(PackedBitsTest, PairsOfIntegersAreAddedAndCompared) {
  const std::vector<Row> rows = RandomRows();
  const auto sums = Run32("add.u16x2 %wd, %wa, %wb;", rows);
  const auto minima = Run32("min.s16x2 %wd, %wa, %wb;", rows);
  const auto maxima = Run32("max.u16x2 %wd, %wa, %wb;", rows);
  const auto relu = Run32("max.relu.s16x2 %wd, %wa, %wb;", rows);
  const auto word = Run32("min.relu.s32 %wd, %wa, %wb;", rows);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::uint64_t expected[4] = {};
    for (unsigned k = 0; k < 2; ++k) {
      const auto set = [&](unsigned which, std::int64_t value) {
        expected[which] |= (static_cast<std::uint64_t>(value) & 0xffff) << (16 * k);
      };
      const std::int64_t a = Field(rows[i][0], k, 16, true);
      const std::int64_t b = Field(rows[i][1], k, 16, true);
      set(0, a + b);
      set(1, std::min(a, b));
      set(2, std::max(Field(rows[i][0], k, 16, false), Field(rows[i][1], k, 16, false)));
      set(3, std::max({a, b, std::int64_t{0}}));
    }
    ASSERT_EQ(sums[i], expected[0]);
    ASSERT_EQ(minima[i], expected[1]);
    ASSERT_EQ(maxima[i], expected[2]);
    ASSERT_EQ(relu[i], expected[3]);
    const std::int64_t a = Field(rows[i][0], 0, 32, true);
    const std::int64_t b = Field(rows[i][1], 0, 32, true);
    ASSERT_EQ(word[i], static_cast<std::uint64_t>(std::max<std::int64_t>(std::min(a, b), 0)));
  }
}

// fns walks over the bits of a mask.
TEST_F(PackedBitsTest, FindsTheNthSetBit) {
  std::vector<Row> rows;
  while (rows.size() < 4096) {
    const std::uint64_t mask = rows.size() % 3 == 0 ? random_() & random_() : random_();
    rows.push_back({mask & 0xffffffff, random_() % 32, (random_() % 41 - 20) & 0xffffffff});
  }
  rows.push_back({0xffffffff, 0, 33});
  rows.push_back({0xffffffff, 31, 0x80000000});
  const auto out = Run32("fns.b32 %wd, %wa, %wb, %wc;", rows);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto mask = static_cast<std::uint32_t>(rows[i][0]);
    const auto base = static_cast<int>(rows[i][1]);
    const auto offset = static_cast<std::int32_t>(rows[i][2]);
    std::uint64_t expected = 0xffffffff;
    if (offset == 0) {
      if (((mask >> base) & 1) != 0) expected = rows[i][1];
    } else {
      std::int64_t left = std::llabs(std::int64_t{offset}) - 1;
      for (int at = base; at >= 0 && at<32; at += offset> 0 ? 1 : -1) {
        if (((mask >> at) & 1) == 0 || left-- != 0) continue;
        expected = static_cast<std::uint64_t>(at);
        break;
      }
    }
    ASSERT_EQ(out[i], expected) << std::hex << mask << " " << base << " " << offset;
  }
}

}  // namespace
}  // namespace torpor::emulator
