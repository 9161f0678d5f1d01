#include "memory/bandwidth_curve.h"

#include <gtest/gtest.h>

#include <vector>

namespace torpor::memory {
namespace {

// Of a link at `rate` bytes a second on which each copy costs `overhead_s` beside.
std::vector<BandwidthPoint> CurveOf(double rate, double overhead_s) {
  std::vector<BandwidthPoint> curve;
  for (Bytes bytes = 64 * kKiB; bytes <= 64 * kMiB; bytes *= 2) {
    const auto size = static_cast<double>(bytes);
    curve.push_back({bytes, size / (overhead_s + size / rate)});
  }
  return curve;
}

TEST(BandwidthCurveTest, TheElbowGrowsWithRateAndOverhead) {
  EXPECT_EQ(FindElbow(CurveOf(12e9, 8e-6)), 2 * kMiB);
  EXPECT_EQ(FindElbow(CurveOf(24e9, 8e-6)), 4 * kMiB);
  EXPECT_EQ(FindElbow(CurveOf(12e9, 2e-6)), 512 * kKiB);
}

TEST(BandwidthCurveTest, WithoutOverheadTheSmallestSizeWillDo) {
  EXPECT_EQ(FindElbow(CurveOf(12e9, 0)), 64 * kKiB);
}

TEST(BandwidthCurveTest, ASizeThatIsSlowerThanSmallerOnesDoesNotMatter) {
  EXPECT_EQ(FindElbow(std::vector<BandwidthPoint>{{1, 5}, {2, 10}, {4, 8}, {8, 9.9}}), 2U);
}

TEST(BandwidthCurveTest, ThePeakIsTheBestRate) {
  EXPECT_EQ(PeakRate(std::vector<BandwidthPoint>{{1, 5}, {2, 10}, {4, 8}}), 10);
}

TEST(BandwidthCurveTest, AnEmptyCurveHasNeither) {
  EXPECT_EQ(FindElbow({}), std::nullopt);
  EXPECT_EQ(PeakRate({}), 0);
}

}  // namespace
}  // namespace torpor::memory
