// The special functions against the host's, over all magnitudes, within what the PTX manual allows.
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>

#include "tests/emulator/exec/kernel_test.h"

namespace torpor::emulator {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kMinNormal = std::numeric_limits<float>::min();

float Flushed(float x) { return std::fabs(x) < kMinNormal ? std::copysign(0.0F, x) : x; }

class SpecialTest : public KernelTest {
 protected:
  // Every exponent of both signs with 1024 mantissas, so zeros, subnormals, infinities and NaNs
  // too; and as many numbers near 1.
  static constexpr int kSweep = 2 << 18;
  static constexpr int kCount = 2 * kSweep;

  void SetUp() override {
    Load("special");
    for (int i = 0; i < kSweep; ++i) {
      const std::uint32_t noise = static_cast<std::uint32_t>(i) * 2654435761U;
      const std::uint32_t low = i % 1024 == 0 ? 0 : noise >> 10 & 0x1fff;
      in_[i] = std::bit_cast<float>(static_cast<std::uint32_t>(i) << 13 | low);
      in_[kSweep + i] = static_cast<float>(i) * 0x1p-14F - 16;
    }
    MustRun("special", {kCount / 256, 1, 1}, {256, 1, 1}, in_.data(), out_.data(), kCount);
  }

  // Judges the pairs (argument, result) of one function.
  void Check(int function, const std::function<bool(float x, float got)>& is_right) {
    int wrong = 0;
    for (int i = 0; i < kCount; ++i) {
      const float x = in_[i];
      const float got = out_[std::size_t{kCount} * static_cast<std::size_t>(function) + i];
      if (is_right(x, got)) continue;
      ADD_FAILURE() << "f(" << x << ") = " << got;
      if (++wrong == 10) return;
    }
  }

  DeviceArray<float> in_{memory_, kCount};
  DeviceArray<float> out_{memory_, std::size_t{10} * kCount};
};

bool Near(double got, double expected, double tolerance) {
  if (std::isnan(expected)) return std::isnan(got);
  return got == expected || std::fabs(got - expected) <= tolerance;
}

bool IsExp2(double x, float got) {
  const double expected = std::exp2(x);
  if (expected > std::numeric_limits<float>::max()) return got == kInfinity;
  return Near(got, expected, std::max(expected * 0x1p-22, 0x1p-149));
}

TEST_F(SpecialTest, PowersOfTwo) {
  Check(0, IsExp2);
  Check(1, [](float x, float got) {
    if (std::exp2(double{x}) < kMinNormal * (1 - 0x1p-22)) return got == 0;
    return IsExp2(Flushed(x), got);
  });
}

bool IsLog2(double x, float got) {
  const double expected = std::log2(x);
  return Near(got, expected, x > 0.5 && x < 2 ? 0x1p-22 : std::fabs(expected) * 0x1p-22);
}

TEST_F(SpecialTest, Logarithms) {
  Check(2, IsLog2);
  Check(3, [](float x, float got) { return IsLog2(Flushed(x), got); });
}

// Machine code has rounded the angle before: x times a rounded 1/2pi.
bool IsWave(float x, float got, double expected) {
  const double rounded = KernelsAreMachineCode() ? std::fabs(x) * 0x1p-22 : 0;
  if (std::fabs(x) <= 0x1p20F) return Near(got, expected, 0x1p-22 + rounded);
  return std::isfinite(x) ? std::fabs(got) <= 1 : std::isnan(got);
}

TEST_F(SpecialTest, SinesAndCosines) {
  Check(4, [](float x, float got) { return IsWave(x, got, std::sin(double{x})); });
  Check(5, [](float x, float got) { return IsWave(x, got, std::cos(double{x})); });
}

TEST_F(SpecialTest, HyperbolicTangents) {
  Check(6, [](float x, float got) {
    const double expected = std::tanh(double{x});
    return Near(got, expected, std::fabs(expected) * 0x1p-21);
  });
}

TEST_F(SpecialTest, RootsAndReciprocalsAreRounded) {
  Check(7, [](float x, float got) { return Near(got, std::sqrt(x), 0); });
  Check(8, [](float x, float got) { return Near(got, 1 / x, 0); });
  Check(9, [](float x, float got) {
    const double expected = 1 / std::sqrt(double{x});
    return Near(got, expected, expected * 0x1p-22);
  });
}

}  // namespace
}  // namespace torpor::emulator
