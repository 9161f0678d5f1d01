#include "client_shim/core/memory/allocation_map.h"

#include <gtest/gtest.h>

namespace torpor::shim {
namespace {

TEST(AllocationMap, FindsTheAllocationAroundAnAddress) {
  AllocationMap map;
  map.Insert({100, 50, true});
  map.Insert({200, 10, false});
  ClientCore::Allocation found;
  ASSERT_TRUE(map.Find(149, found));
  EXPECT_EQ(found.begin, 100u);
  EXPECT_TRUE(found.on_device);
  ASSERT_TRUE(map.Find(200, found));
  EXPECT_FALSE(found.on_device);
  EXPECT_FALSE(map.Find(99, found));
  EXPECT_FALSE(map.Find(150, found));
  EXPECT_FALSE(map.Find(210, found));
}

TEST(AllocationMap, ErasesByBeginOnly) {
  AllocationMap map;
  map.Insert({100, 50, true});
  map.Insert({200, 10, false});
  EXPECT_FALSE(map.Erase(101));
  EXPECT_TRUE(map.Erase(100));
  EXPECT_FALSE(map.Erase(100));
  ASSERT_EQ(map.All().size(), 1u);
  EXPECT_EQ(map.All().front().begin, 200u);
}

}  // namespace
}  // namespace torpor::shim
