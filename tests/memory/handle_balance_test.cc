#include "memory/handle_balance.h"

#include <gtest/gtest.h>

namespace torpor::memory {
namespace {

constexpr HandleSizes kSizes;
constexpr HandleBalance kBalance;

HandleCounts After(HandleCounts free, const HandleExchange& exchange) {
  return {free.small - exchange.release.small + exchange.create.small,
          free.large - exchange.release.large + exchange.create.large};
}

TEST(HandleBalance, APoolBeginsWithMostOfItsMemoryInLargeHandles) {
  const HandleCounts counts = StartCounts(kGiB, kSizes, kBalance);
  EXPECT_EQ(counts, (HandleCounts{64, 28}));
  EXPECT_EQ(StartCounts(kGiB + 3 * kMiB, kSizes, kBalance).bytes(kSizes), kGiB + 2 * kMiB);
  EXPECT_EQ(StartCounts(20 * kMiB, kSizes, kBalance), (HandleCounts{10, 0}));
}

TEST(HandleBalance, SplitsWhereSmallOnesAreFewAndJoinsWhereTheyAreMany) {
  const auto split = NextExchange({3, 10}, kSizes, kBalance);
  ASSERT_TRUE(split);
  EXPECT_EQ(split->release, (HandleCounts{0, 1}));
  EXPECT_EQ(split->create, (HandleCounts{16, 0}));
  const auto join = NextExchange({100, 10}, kSizes, kBalance);
  ASSERT_TRUE(join);
  EXPECT_EQ(join->release, (HandleCounts{16, 0}));
  EXPECT_EQ(join->create, (HandleCounts{0, 1}));
  EXPECT_FALSE(NextExchange({32, 10}, kSizes, kBalance));
  EXPECT_FALSE(NextExchange({0, 0}, kSizes, kBalance));
}

TEST(HandleBalance, ComesToRestFromAnywhereAndKeepsEveryByte) {
  for (std::size_t small = 0; small < 200; ++small) {
    for (std::size_t large = 0; large < 20; ++large) {
      HandleCounts free{small, large};
      int exchanges = 0;
      while (const auto exchange = NextExchange(free, kSizes, kBalance)) {
        free = After(free, *exchange);
        ASSERT_LT(++exchanges, 30) << small << " " << large;
      }
      EXPECT_EQ(free.bytes(kSizes), (HandleCounts{small, large}.bytes(kSizes)));
    }
  }
}

}  // namespace
}  // namespace torpor::memory
