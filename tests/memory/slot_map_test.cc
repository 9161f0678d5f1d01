#include "memory/slot_map.h"

#include <gtest/gtest.h>

namespace torpor::memory {
namespace {

TEST(SlotMap, GivesEverySlotOnceLowestFirst) {
  SlotMap slots(70);
  for (std::uint32_t slot = 0; slot < 70; ++slot) EXPECT_EQ(slots.Take(), slot);
  EXPECT_FALSE(slots.Take());
  EXPECT_EQ(slots.free_slots(), 0u);
  slots.Release(65);
  slots.Release(3);
  EXPECT_EQ(slots.Take(), 3u);
  EXPECT_EQ(slots.Take(), 65u);
}

TEST(SlotMap, TakesAnExactSlotIfItIsFree) {
  SlotMap slots(64);
  EXPECT_TRUE(slots.TakeAt(63));
  EXPECT_FALSE(slots.TakeAt(63));
  EXPECT_FALSE(slots.TakeAt(64));
  EXPECT_EQ(slots.free_slots(), 63u);
}

}  // namespace
}  // namespace torpor::memory
