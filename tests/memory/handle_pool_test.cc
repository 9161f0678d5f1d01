#include "memory/handle_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace torpor::memory {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(HandlePool, TakesAllOrNothing) {
  HandlePool pool;
  pool.Add(1);
  pool.Add(2);
  std::vector<Handle> taken;
  EXPECT_FALSE(pool.Take(3, taken));
  EXPECT_THAT(taken, IsEmpty());
  EXPECT_TRUE(pool.Take(2, taken));
  EXPECT_THAT(taken, ElementsAre(1, 2));
  EXPECT_EQ(pool.free(), 0u);
  EXPECT_EQ(pool.total(), 2u);
}

TEST(HandlePool, ReturnedHandlesAreTakenFirst) {
  HandlePool pool;
  for (const Handle handle : {1, 2, 3}) pool.Add(handle);
  std::vector<Handle> taken;
  ASSERT_TRUE(pool.Take(1, taken));
  pool.Return(taken);
  std::vector<Handle> again;
  ASSERT_TRUE(pool.Take(1, again));
  EXPECT_EQ(again, taken);
}

}  // namespace
}  // namespace torpor::memory
