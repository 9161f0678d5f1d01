#include "server/executor/image/address_hull.h"

#include <gtest/gtest.h>

namespace torpor::executor {
namespace {

constexpr std::uint64_t kHullBase = 0x2000'0000'0000;

TEST(AddressHull, HoldsNothingBeforeTheFirstAllocation) {
  const AddressRange range = AddressHull(kHullBase).range();
  EXPECT_EQ(range.bytes, 0u);
  EXPECT_FALSE(range.Holds(kHullBase, 1));
}

TEST(AddressHull, ReachesFromTheLowestToTheHighest) {
  AddressHull hull(kHullBase);
  hull.Add({kMiB, 2 * kMiB});
  hull.Add({8 * kMiB, 9 * kMiB});
  hull.Add({4 * kMiB, 5 * kMiB});
  EXPECT_EQ(hull.range().begin, kHullBase + kMiB);
  EXPECT_EQ(hull.range().bytes, 8 * kMiB);
}

TEST(AddressRange, HoldsWhatLiesWhollyInside) {
  const AddressRange range{kHullBase, 100};
  EXPECT_TRUE(range.Holds(kHullBase, 100));
  EXPECT_TRUE(range.Holds(kHullBase + 99, 1));
  EXPECT_FALSE(range.Holds(kHullBase + 99, 2));
  EXPECT_FALSE(range.Holds(kHullBase - 1, 1));
  EXPECT_FALSE(range.Holds(kHullBase + 1, ~Bytes{0}));
}

}  // namespace
}  // namespace torpor::executor
