#include "server/executor/image/address_table.h"

#include <gtest/gtest.h>

#include "memory/range_allocator.h"

namespace torpor::executor {
namespace {

constexpr Bytes kGuard = memory::RangeAllocator::kGuard;
constexpr CUdeviceptr kArena = 0x7000'0000'0000;

TEST(AddressTableTest, NothingIsAnywhereInAnEmptyOne) {
  const AddressTable table(1, {});
  EXPECT_EQ(table.version(), 1u);
  EXPECT_EQ(table.Translate(0), 0u);
  EXPECT_EQ(table.Translate(~Bytes{0}), 0u);
}

TEST(AddressTableTest, APointerMayPointALittleBehindABlock) {
  const AddressTable table(1, {{{4 * kMiB, 6 * kMiB}, kArena}});
  EXPECT_EQ(table.Translate(4 * kMiB - 1), 0u);
  EXPECT_EQ(table.Translate(4 * kMiB), kArena);
  EXPECT_EQ(table.Translate(6 * kMiB), kArena + 2 * kMiB);
  EXPECT_EQ(table.Translate(6 * kMiB + kGuard - 1), kArena + 2 * kMiB + kGuard - 1);
  EXPECT_EQ(table.Translate(6 * kMiB + kGuard), 0u);
  EXPECT_EQ(table.Translate(~Bytes{0}), 0u);
}

TEST(AddressTableTest, WhereBlocksMeetTheLaterOneBegins) {
  const AddressTable table(1, {{{0, kMiB}, kArena}, {{kMiB, 2 * kMiB}, kArena + kGiB}});
  EXPECT_EQ(table.Translate(kMiB - 1), kArena + kMiB - 1);
  EXPECT_EQ(table.Translate(kMiB), kArena + kGiB);
}

TEST(AddressTableTest, FindsAnyOfAnyNumberOfBlocks) {
  for (Bytes count = 1; count <= 40; ++count) {
    std::vector<BackedPart> blocks;
    blocks.reserve(count);
    for (Bytes i = 0; i < count; ++i) {
      // As if the last came first into the arena.
      blocks.push_back({{4 * i * kMiB, (4 * i + 2) * kMiB}, kArena + (count - i) * 2 * kMiB});
    }
    const AddressTable table(1, blocks);
    for (const BackedPart& block : blocks) {
      EXPECT_EQ(table.Translate(block.extent.begin), block.address) << count;
      EXPECT_EQ(table.Translate(block.extent.end - 1), block.address + 2 * kMiB - 1) << count;
      EXPECT_EQ(table.Translate(block.extent.end + kMiB), 0u) << count;
    }
  }
}

}  // namespace
}  // namespace torpor::executor
