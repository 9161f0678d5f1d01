#include "memory/handle_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace torpor::memory {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(HandlePool, TakesAllOrNothing) {
  HandlePool pool;
  pool.Add({{1, 2}, {30}});
  Handles taken;
  EXPECT_FALSE(pool.Take({3, 0}, taken));
  EXPECT_FALSE(pool.Take({1, 2}, taken));
  EXPECT_THAT(taken.small, IsEmpty());
  EXPECT_TRUE(pool.Take({2, 1}, taken));
  EXPECT_THAT(taken.small, ElementsAre(1, 2));
  EXPECT_THAT(taken.large, ElementsAre(30));
  EXPECT_EQ(pool.free(), (HandleCounts{0, 0}));
  EXPECT_EQ(pool.total(), (HandleCounts{2, 1}));
}

TEST(HandlePool, ReturnedHandlesAreTakenFirst) {
  HandlePool pool;
  pool.Add({{1, 2, 3}, {}});
  Handles taken;
  ASSERT_TRUE(pool.Take({1, 0}, taken));
  pool.Return(taken);
  Handles again;
  ASSERT_TRUE(pool.Take({1, 0}, again));
  EXPECT_EQ(again.small, taken.small);
}

TEST(HandlePool, NewHandlesAreTakenLast) {
  HandlePool pool;
  pool.Add({{1}, {30}});
  Handles taken;
  ASSERT_TRUE(pool.Take({1, 1}, taken));
  pool.Return(taken);
  pool.Add({{2}, {31}});
  Handles again;
  ASSERT_TRUE(pool.Take({1, 1}, again));
  EXPECT_THAT(again.small, ElementsAre(1));
  EXPECT_THAT(again.large, ElementsAre(30));
}

TEST(HandlePool, TheLongestUnusedAreRemoved) {
  HandlePool pool;
  pool.Add({{1, 2}, {30}});
  Handles removed;
  EXPECT_FALSE(pool.Remove({0, 2}, removed));
  EXPECT_TRUE(pool.Remove({1, 1}, removed));
  EXPECT_THAT(removed.small, ElementsAre(1));
  EXPECT_THAT(removed.large, ElementsAre(30));
  EXPECT_EQ(pool.total(), (HandleCounts{1, 0}));
}

}  // namespace
}  // namespace torpor::memory
