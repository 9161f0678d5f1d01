#include "memory/extent_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

namespace torpor::memory {
namespace {

using ::testing::ElementsAre;

TEST(ExtentSet, MergesNeighboursAndOverlaps) {
  ExtentSet set;
  set.Add({10, 20});
  set.Add({30, 40});
  set.Add({20, 30});
  EXPECT_THAT(set.extents(), ElementsAre(Extent{10, 40}));
  set.Add({5, 12});
  EXPECT_THAT(set.extents(), ElementsAre(Extent{5, 40}));
  EXPECT_EQ(set.total_bytes(), 35u);
}

TEST(ExtentSet, RemovingFromTheMiddleLeavesBothEnds) {
  ExtentSet set;
  set.Add({0, 100});
  set.Remove({40, 60});
  EXPECT_THAT(set.extents(), ElementsAre(Extent{0, 40}, Extent{60, 100}));
  EXPECT_TRUE(set.Contains({0, 40}));
  EXPECT_FALSE(set.Contains({0, 41}));
  EXPECT_FALSE(set.Contains({50, 70}));
  EXPECT_THAT(set.Gaps({30, 110}), ElementsAre(Extent{40, 60}, Extent{100, 110}));
  EXPECT_THAT(set.Within({30, 70}), ElementsAre(Extent{30, 40}, Extent{60, 70}));
}

TEST(ExtentSet, AnInvertedExtentIsNotInside) {
  ExtentSet set;
  set.Add({0, 100});
  EXPECT_FALSE(set.Contains({50, 10}));
}

TEST(ExtentSet, AgreesWithABitmap) {
  std::mt19937 random(7);
  std::vector<bool> bitmap(200);
  ExtentSet set;
  for (int step = 0; step < 3000; ++step) {
    const Bytes begin = random() % 200;
    const Bytes end = begin + random() % (201 - begin);
    const bool add = random() % 2 == 0;
    add ? set.Add({begin, end}) : set.Remove({begin, end});
    for (Bytes i = begin; i < end; ++i) bitmap[i] = add;
    const Bytes from = random() % 200;
    const Bytes to = from + 1 + random() % (200 - from);
    bool all = true;
    for (Bytes i = from; i < to; ++i) all = all && bitmap[i];
    ASSERT_EQ(set.Contains({from, to}), all) << from << ".." << to;
    Bytes inside = 0;
    for (const Extent& part : set.Within({from, to})) inside += part.bytes();
    Bytes outside = 0;
    for (const Extent& gap : set.Gaps({from, to})) outside += gap.bytes();
    ASSERT_EQ(inside + outside, to - from);
  }
}

}  // namespace
}  // namespace torpor::memory
