#include "tools/workload/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

namespace torpor::workload {
namespace {

constexpr int kDraws = 200'000;

Random Any(std::uint64_t index = 0) { return {7, Random::Purpose::kArrivals, index}; }

struct Moments {
  double mean = 0;
  double variance = 0;
};

Moments MomentsOf(const std::function<double()>& draw) {
  std::vector<double> values;
  values.reserve(kDraws);
  Moments moments;
  for (int i = 0; i < kDraws; ++i) {
    values.push_back(draw());
    moments.mean += values.back() / kDraws;
  }
  for (const double value : values) {
    moments.variance += (value - moments.mean) * (value - moments.mean) / kDraws;
  }
  return moments;
}

// Four deviations of the mean of the draws.
double Tolerance(double variance) { return 4 * std::sqrt(variance / kDraws); }

TEST(RandomTest, IsXoshiro256StarStar) {
  // The first numbers of the authors' reference implementation from this state.
  Random random({1, 2, 3, 4});
  for (const std::uint64_t expected :
       {std::uint64_t{11520}, std::uint64_t{0}, std::uint64_t{1509978240},
        std::uint64_t{1215971899390074240}, std::uint64_t{1216172134540287360}}) {
    EXPECT_EQ(random.Next(), expected);
  }
}

TEST(RandomTest, StreamsDifferInEveryArgument) {
  const std::uint64_t first = Random(1, Random::Purpose::kArrivals, 0).Next();
  EXPECT_EQ(first, Random(1, Random::Purpose::kArrivals, 0).Next());
  EXPECT_NE(first, Random(2, Random::Purpose::kArrivals, 0).Next());
  EXPECT_NE(first, Random(1, Random::Purpose::kRows, 0).Next());
  EXPECT_NE(first, Random(1, Random::Purpose::kArrivals, 1).Next());
}

TEST(RandomTest, LogarithmAndExponentialAreTrue) {
  for (double x = 1e-300; x < 1e300; x *= 1.37) {
    EXPECT_NEAR(PortableLog(x), std::log(x), 4e-16 * std::max(1.0, std::abs(std::log(x)))) << x;
  }
  for (double x = -700; x < 700; x += 0.37) {
    EXPECT_NEAR(PortableExp(x) / std::exp(x), 1, 2e-15) << x;
  }
  EXPECT_EQ(PortableLog(1), 0);
  EXPECT_EQ(PortableExp(0), 1);
  EXPECT_EQ(PortableExp(-1e9), 0);
  EXPECT_LT(PortableLog(std::numeric_limits<double>::denorm_min()), -744);
}

TEST(RandomTest, UniformNumbersFillTheirRange) {
  Random random = Any();
  const Moments moments = MomentsOf([&] { return random.Uniform(); });
  EXPECT_NEAR(moments.mean, 0.5, Tolerance(1.0 / 12));
  EXPECT_NEAR(moments.variance, 1.0 / 12, 0.001);
}

TEST(RandomTest, BelowReachesAllAndFavoursNone) {
  Random random = Any();
  std::vector<int> counts(7);
  for (int i = 0; i < 70'000; ++i) ++counts.at(random.Below(7));
  for (const int count : counts) EXPECT_NEAR(count, 10'000, 400);
}

TEST(RandomTest, ExponentialAndNormalHaveTheirMoments) {
  Random random = Any();
  const Moments exponential = MomentsOf([&] { return random.Exponential(); });
  EXPECT_NEAR(exponential.mean, 1, Tolerance(1));
  EXPECT_NEAR(exponential.variance, 1, 0.03);
  const Moments normal = MomentsOf([&] { return random.Normal(); });
  EXPECT_NEAR(normal.mean, 0, Tolerance(1));
  EXPECT_NEAR(normal.variance, 1, 0.02);
}

TEST(RandomTest, GammaHasMeanAndVarianceOfItsShape) {
  for (const double shape : {0.05, 0.3, 1.0, 4.0, 250.0}) {
    Random random = Any();
    const Moments moments = MomentsOf([&] { return random.Gamma(shape); });
    EXPECT_NEAR(moments.mean, shape, Tolerance(shape)) << shape;
    EXPECT_NEAR(moments.variance / shape, 1, shape < 0.1 ? 0.1 : 0.03) << shape;
  }
}

TEST(RandomTest, PoissonHasMeanAndVarianceOfItsMean) {
  for (const double mean : {0.0, 0.4, 9.9, 10.0, 11.0, 57.0, 3000.0, 1e8}) {
    Random random = Any();
    const Moments moments = MomentsOf([&] { return static_cast<double>(random.Poisson(mean)); });
    EXPECT_NEAR(moments.mean, mean, Tolerance(mean)) << mean;
    EXPECT_NEAR(moments.variance, mean, 0.02 * mean) << mean;
  }
}

TEST(RandomTest, PoissonHasItsProbabilities) {
  // On either side of where the method changes.
  for (const double mean : {9.5, 11.0}) {
    Random random = Any();
    std::vector<double> shares(64);
    for (int i = 0; i < kDraws; ++i) {
      shares.at(static_cast<std::size_t>(random.Poisson(mean))) += 1.0 / kDraws;
    }
    double probability = std::exp(-mean);
    for (int k = 0; k < 30; probability *= mean / ++k) {
      EXPECT_NEAR(shares[static_cast<std::size_t>(k)], probability, 0.003) << mean << " " << k;
    }
  }
}

TEST(RandomTest, TheFirstNumbersAreAlwaysThese) {
  Random random = Any();
  EXPECT_EQ(random.Next(), 8972932713842526671U);
  EXPECT_EQ(random.Exponential(), 0x1.22729ca080d14p+0);
  EXPECT_EQ(random.Normal(), 0x1.6020013cc8cb7p-2);
  EXPECT_EQ(random.Gamma(0.5), 0x1.13a0d2568b8p-5);
  EXPECT_EQ(random.Gamma(4), 0x1.acc1539cca181p+1);
  EXPECT_EQ(random.Poisson(3), 1);
  EXPECT_EQ(random.Poisson(300), 304);
}

}  // namespace
}  // namespace torpor::workload
