#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "tests/emulator/exec/kernel_test.h"
#include "tests/emulator/exec/kernels/per_thread.h"

namespace torpor::emulator {
namespace {

constexpr int kCount = 4096;
constexpr Dim3 kGrid = {kCount / 128, 1, 1};
constexpr Dim3 kBlock = {128, 1, 1};

class ArithmeticTest : public KernelTest {
 protected:
  void SetUp() override { Load("arithmetic"); }

  // Random bits, with the awkward numbers among them.
  template <typename T>
  void FillIntegers(DeviceArray<T>& array) {
    for (std::size_t i = 0; i < array.size(); ++i) {
      const std::uint64_t bits = random_();
      array[i] = static_cast<T>(bits >> (random_() % 64));
      if (i % 16 == 0) array[i] = static_cast<T>(i / 16 % 5) - 2;
      if (i % 37 == 0) array[i] = std::numeric_limits<T>::min();
      if (i % 41 == 0) array[i] = std::numeric_limits<T>::max();
    }
  }

  template <typename T>
  void FillReals(DeviceArray<T>& array, T span) {
    std::uniform_real_distribution<T> distribution(-span, span);
    for (std::size_t i = 0; i < array.size(); ++i) array[i] = distribution(random_);
  }

  std::mt19937_64 random_{20240601};
};

TEST_F(ArithmeticTest, IntegersMatchTheHost) {
  DeviceArray<int> a(memory_, kCount);
  DeviceArray<int> b(memory_, kCount);
  DeviceArray<int> out(memory_, kCount);
  FillIntegers(a);
  FillIntegers(b);
  MustRun("integers", kGrid, kBlock, a.data(), b.data(), out.data(), kCount);
  for (int i = 0; i < kCount; ++i) ASSERT_EQ(out[i], Integers(a[i], b[i])) << a[i] << " " << b[i];
}

TEST_F(ArithmeticTest, LongsMatchTheHost) {
  DeviceArray<long long> a(memory_, kCount);
  DeviceArray<long long> b(memory_, kCount);
  DeviceArray<long long> out(memory_, kCount);
  FillIntegers(a);
  FillIntegers(b);
  MustRun("longs", kGrid, kBlock, a.data(), b.data(), out.data(), kCount);
  for (int i = 0; i < kCount; ++i) ASSERT_EQ(out[i], Longs(a[i], b[i])) << a[i] << " " << b[i];
}

TEST_F(ArithmeticTest, ConversionsMatchTheHost) {
  DeviceArray<float> f(memory_, kCount);
  DeviceArray<double> d(memory_, kCount);
  DeviceArray<int> k(memory_, kCount);
  DeviceArray<int> out(memory_, kCount);
  FillReals(f, 1e6F);
  FillReals(d, 1e7);
  FillIntegers(k);
  for (int i = 0; i < kCount; ++i) k[i] /= 4;  // their float must convert back
  MustRun("conversions", kGrid, kBlock, f.data(), d.data(), k.data(), out.data(), kCount);
  for (int i = 0; i < kCount; ++i) ASSERT_EQ(out[i], Conversions(f[i], d[i], k[i])) << i;
}

TEST_F(ArithmeticTest, BitFunctions) {
  DeviceArray<unsigned> a(memory_, kCount);
  DeviceArray<unsigned> b(memory_, kCount);
  DeviceArray<unsigned> out(memory_, std::size_t{10} * kCount);
  FillIntegers(a);
  FillIntegers(b);
  MustRun("bit_functions", kGrid, kBlock, a.data(), b.data(), out.data(), kCount);
  for (int i = 0; i < kCount; ++i) {
    const unsigned x = a[i];
    const unsigned y = b[i];
    const unsigned* r = &out[std::size_t{10} * i];
    const std::uint64_t both = std::uint64_t{y} << 32 | x;
    ASSERT_EQ(r[0], static_cast<unsigned>(std::popcount(x)));
    ASSERT_EQ(r[1], static_cast<unsigned>(std::countl_zero(x)));
    unsigned reversed = 0;
    unsigned permuted = 0;
    int dot = 3;
    for (unsigned k = 0; k < 32; ++k) reversed |= ((x >> k) & 1) << (31 - k);
    for (unsigned k = 0; k < 4; ++k) {
      permuted |= static_cast<unsigned>(both >> (8 * ((x >> (4 * k)) & 7)) & 255) << (8 * k);
      dot += static_cast<std::int8_t>(x >> (8 * k)) * static_cast<std::int8_t>(y >> (8 * k));
    }
    ASSERT_EQ(r[2], reversed);
    ASSERT_EQ(r[3], permuted);
    ASSERT_EQ(r[4], static_cast<unsigned>(both << (y & 31) >> 32));
    ASSERT_EQ(r[5], static_cast<unsigned>(both >> (y & 31)));
    ASSERT_EQ(r[6], static_cast<unsigned>(std::uint64_t{x} * y >> 32));
    const std::int64_t difference = std::int64_t{static_cast<int>(x)} - static_cast<int>(y);
    ASSERT_EQ(r[7], static_cast<unsigned>(std::llabs(difference) + 5));
    ASSERT_EQ(r[8], x == 0 ? 0U : static_cast<unsigned>(std::countr_zero(x)) + 1);
    ASSERT_EQ(r[9], static_cast<unsigned>(dot));
  }
}

TEST_F(ArithmeticTest, RareInstructions) {
  DeviceArray<unsigned> a(memory_, kCount);
  DeviceArray<unsigned> b(memory_, kCount);
  DeviceArray<unsigned> out(memory_, std::size_t{12} * kCount);
  FillIntegers(a);
  FillIntegers(b);
  MustRun("rare_instructions", kGrid, kBlock, a.data(), b.data(), out.data(), kCount);
  for (int i = 0; i < kCount; ++i) {
    const unsigned x = a[i];
    const unsigned y = b[i];
    const unsigned* r = &out[std::size_t{12} * i];
    const unsigned position = y & 63;
    const unsigned length = (y >> 8) & 63;
    // Bit by bit, as the PTX manual defines them.
    unsigned field = 0;
    unsigned signed_field = 0;
    unsigned inserted = y;
    const unsigned last = std::min(position + length - 1, 31U);
    const bool sign = length != 0 && ((x >> last) & 1) != 0;
    for (unsigned k = 0; k < 32; ++k) {
      const bool inside = k < length && position + k <= 31;
      const unsigned bit = inside ? (x >> (position + k)) & 1 : 0;
      field |= bit << k;
      signed_field |= (inside ? bit : static_cast<unsigned>(sign)) << k;
      if (k < length && position + k < 32) {
        inserted &= ~(1U << (position + k));
        inserted |= ((x >> k) & 1) << (position + k);
      }
    }
    ASSERT_EQ(r[0], field);
    ASSERT_EQ(r[1], length == 0 ? 0U : signed_field) << x << " " << position << " " << length;
    ASSERT_EQ(r[2], inserted);
    ASSERT_EQ(r[3], x == 0 ? ~0U : 31U - static_cast<unsigned>(std::countl_zero(x)));
    const unsigned magnitude = static_cast<int>(x) < 0 ? ~x : x;
    ASSERT_EQ(r[4], magnitude == 0 ? ~0U : static_cast<unsigned>(std::countl_zero(magnitude)));
    ASSERT_EQ(r[5], (x & y) | (~x & (x ^ 0x5a5a5a5aU)));
    ASSERT_EQ(r[6], (x & 0xffffff) * (y & 0xffffff));
    const unsigned mask_position = x & 63;
    const unsigned mask_length = y & 63;
    const std::uint64_t ones = mask_length >= 32 ? 0xffffffffULL : (1ULL << mask_length) - 1;
    ASSERT_EQ(r[7], mask_position >= 32 ? 0U : static_cast<unsigned>(ones << mask_position));
    const unsigned width = y & 31;
    ASSERT_EQ(r[8], width == 0 ? 0U
                               : static_cast<unsigned>(static_cast<int>(x << (32 - width)) >>
                                                       (32 - width)));
    ASSERT_EQ(r[9], static_cast<int>(x - y) >= 0 ? x : y);
    ASSERT_EQ(r[10], x + static_cast<unsigned>((std::uint64_t{x} + y) >> 32));
    ASSERT_EQ(r[11], x - (x < y ? 1U : 0U));
  }
}

// The host's own arithmetic in another rounding mode; `volatile` keeps the compiler from folding.
template <typename T, typename Operation>
T Rounded(int mode, Operation operation, T x, T y) {
  volatile T a = x;
  volatile T b = y;
  std::fesetround(mode);
  volatile T result = operation(a, b);
  std::fesetround(FE_TONEAREST);
  return result;
}

TEST_F(ArithmeticTest, FloatsRoundAsAskedFor) {
  DeviceArray<float> a(memory_, kCount);
  DeviceArray<float> b(memory_, kCount);
  DeviceArray<float> out(memory_, std::size_t{16} * kCount);
  FillReals(a, 100.0F);
  FillReals(b, 3.0F);
  a[0] = std::numeric_limits<float>::quiet_NaN();
  a[1] = std::numeric_limits<float>::infinity();
  b[2] = 0;
  a[3] = -0.0F;
  MustRun("floats", kGrid, kBlock, a.data(), b.data(), out.data(), kCount);
  for (int i = 4; i < kCount; ++i) {
    const float x = a[i];
    const float y = b[i];
    const float* r = &out[std::size_t{16} * i];
    ASSERT_EQ(r[0], x + y);
    ASSERT_EQ(r[1], std::fma(x, y, -1.0F));
    ASSERT_EQ(r[2], x / y);
    ASSERT_EQ(r[3], std::sqrt(std::fabs(x)));
    ASSERT_EQ(r[4], std::fmin(x, y));
    ASSERT_EQ(r[5], std::fmax(x, y));
    ASSERT_EQ(r[6], std::fma(x, y, 0.25F));
    ASSERT_EQ(r[7], std::floor(x) + std::ceil(y) + std::trunc(x * 3) + std::rint(y * 5));
    ASSERT_EQ(r[8], (Rounded<float>(
                        FE_DOWNWARD, [](float p, float q) { return p + q; }, x, y)));
    ASSERT_EQ(r[9], (Rounded<float>(
                        FE_UPWARD, [](float p, float q) { return p * q; }, x, y)));
    ASSERT_EQ(r[10], (Rounded<float>(
                         FE_TOWARDZERO, [](float p, float q) { return p / q; }, x, y)));
    ASSERT_EQ(r[12], std::fmin(std::fmax(x * 0.01F, 0.0F), 1.0F));
    ASSERT_EQ(r[13], std::copysign(x, y));
    ASSERT_EQ(r[15], x < y ? 1.0F : 3.0F);
    const double root = std::sqrt(static_cast<double>(std::fabs(x)));
    ASSERT_GE(r[11], root);
    ASSERT_LT(std::nextafter(r[11], 0.0F), root);
    const double sum = static_cast<double>(x) * y + static_cast<double>(0.1F);
    ASSERT_LE(r[14], sum);
    ASSERT_GT(std::nextafter(r[14], std::numeric_limits<float>::infinity()), sum);
  }
  EXPECT_EQ(out[4], b[0]);  // min(NaN, y)
  EXPECT_EQ(out[15], 2.0F);
  EXPECT_EQ(out[12], 0.0F);  // saturated NaN
  EXPECT_EQ(out[16 + 12], 1.0F);
}

TEST_F(ArithmeticTest, FunctionsAreAccurate) {
  DeviceArray<float> a(memory_, kCount);
  DeviceArray<float> out(memory_, std::size_t{10} * kCount);
  FillReals(a, 20.0F);
  MustRun("functions", kGrid, kBlock, a.data(), out.data(), kCount);
  const auto near = [](float got, double expected, double tolerance) {
    EXPECT_NEAR(got, expected, tolerance * std::max(1.0, std::fabs(expected)));
  };
  for (int i = 0; i < kCount; ++i) {
    const double x = a[i];
    const float* r = &out[std::size_t{10} * i];
    near(r[0], std::exp(x), 4e-6);
    near(r[1], std::log(std::fabs(x) + 1), 1e-6);
    near(r[2], std::sin(x), 1e-6);
    near(r[3], std::cos(x), 1e-6);
    near(r[4], 1 / std::sqrt(std::fabs(x) + 0.5), 1e-6);
    near(r[5], std::pow(std::fabs(x), 1.5), 4e-6);
    near(r[6], std::tanh(x), 1e-6);
    near(r[7], std::erf(x), 1e-6);
    near(r[8], std::sin(x) + std::cos(x), 1e-5);
    near(r[9], std::exp(x * 0.25) + std::log(std::fabs(x) + 2), 1e-5);
  }
}

TEST_F(ArithmeticTest, DoublesAreExact) {
  DeviceArray<double> a(memory_, kCount);
  DeviceArray<double> b(memory_, kCount);
  DeviceArray<double> out(memory_, std::size_t{10} * kCount);
  FillReals(a, 50.0);
  FillReals(b, 9.0);
  MustRun("doubles", kGrid, kBlock, a.data(), b.data(), out.data(), kCount);
  for (int i = 0; i < kCount; ++i) {
    const double x = a[i];
    const double y = b[i];
    const double* r = &out[std::size_t{10} * i];
    EXPECT_NEAR(r[0], std::exp(x * 0.1), 1e-13 * std::exp(x * 0.1));
    EXPECT_NEAR(r[1], std::log(std::fabs(x) + 1), 1e-14);
    EXPECT_NEAR(r[2], std::sin(x), 1e-14);
    EXPECT_NEAR(r[3], std::pow(std::fabs(x), 1.5), 1e-12);
    ASSERT_EQ(r[4], x / y + std::sqrt(std::fabs(x)));
    ASSERT_EQ(r[5], (Rounded<double>(
                        FE_DOWNWARD, [](double p, double q) { return p + q; }, x, y * 1e-18)));
    ASSERT_EQ(r[6], (Rounded<double>(
                        FE_UPWARD, [](double p, double q) { return p * q; }, x, y)));
    ASSERT_EQ(r[7], std::fma(x, y, 0.1));
    ASSERT_EQ(r[8], std::fmin(x, y) + std::fmax(x, 2 * y));
    ASSERT_EQ(r[9], static_cast<double>(static_cast<long long>(x * 1e6)) + std::rint(y));
  }
}

}  // namespace
}  // namespace torpor::emulator
