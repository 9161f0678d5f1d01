#include "memory/tiered_placement.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <vector>

#include "memory/arena_allocator.h"

namespace torpor::memory {
namespace {

constexpr Bytes kPartition = 64 * kMiB;
constexpr Owner kFirst{1};
constexpr Owner kSecond{2};

class TieredArena : public testing::Test {
 protected:
  ArenaAllocator Make(Bytes partitions) {
    return ArenaAllocator(
        std::make_unique<TieredPlacement>(partitions * kPartition, PartitionSizes{}));
  }
  static std::vector<Bytes> AllocateMany(ArenaAllocator& arena, std::size_t count, Bytes bytes) {
    std::vector<Bytes> offsets(count);
    for (Bytes& offset : offsets) offset = *arena.Allocate(kFirst, bytes, 512);
    return offsets;
  }
  static std::set<Bytes> PartitionsOf(const ArenaAllocator& arena, Owner owner) {
    std::set<Bytes> partitions;
    for (const PlacedBlock& block : arena.BlocksOf(owner)) {
      partitions.insert(block.place.offset / kPartition);
    }
    return partitions;
  }
  static void MoveAll(ArenaAllocator& arena) {
    for (auto plan = arena.PlanMoves(~Bytes{0}); !plan.empty(); plan = arena.PlanMoves(~Bytes{0})) {
      for (const Move& move : plan) {
        ASSERT_TRUE(arena.BeginMove(move));
        ASSERT_TRUE(arena.CommitMove(move.from));
      }
    }
  }
};

TEST_F(TieredArena, AnOwnersBlocksAreInPartitionsOfItsOwn) {
  ArenaAllocator arena = Make(16);
  for (int i = 0; i < 4; ++i) {
    arena.Allocate(kFirst, 20 * kMiB, 512);
    arena.Allocate(kSecond, 20 * kMiB, 512);
    arena.Allocate(kFirst, 2 * kMiB, 512);
  }
  EXPECT_EQ(PartitionsOf(arena, kFirst).size(), 3u);
  EXPECT_EQ(PartitionsOf(arena, kSecond).size(), 2u);
  arena.FreeAll(kFirst);
  EXPECT_EQ(arena.use().free, 14 * kPartition);
}

TEST_F(TieredArena, OwnersShareWhenFewPartitionsAreFree) {
  ArenaAllocator arena = Make(8);
  for (std::uint64_t owner = 1; owner <= 20; ++owner) {
    EXPECT_TRUE(arena.Allocate(Owner{owner}, 2 * kMiB, 512));
  }
  EXPECT_EQ(arena.use().free, kPartition);
}

TEST_F(TieredArena, FixedBlocksGoToBuddiesBeforeTheyAreRefused) {
  ArenaAllocator arena = Make(1);
  ASSERT_TRUE(arena.Allocate(kFirst, 4 * kMiB, 512));
  EXPECT_TRUE(arena.Allocate(kFirst, 20 * kMiB, 512));
  EXPECT_TRUE(arena.Allocate(kFirst, 2 * kMiB, 512));
}

TEST_F(TieredArena, SmallBlocksGoToBuddiesBeforeTheyTakeLargeSlots) {
  ArenaAllocator arena = Make(2);
  AllocateMany(arena, 2, 20 * kMiB);
  ASSERT_TRUE(arena.Allocate(kFirst, 62 * kMiB, 512));
  EXPECT_TRUE(arena.Allocate(kFirst, 2 * kMiB, 512));
  EXPECT_TRUE(arena.Allocate(kFirst, 20 * kMiB, 512));
}

TEST_F(TieredArena, SmallBlocksTakeLargeSlotsBeforeTheyAreRefused) {
  ArenaAllocator arena = Make(1);
  AllocateMany(arena, 1, 20 * kMiB);
  EXPECT_TRUE(arena.Allocate(kFirst, 2 * kMiB, 512));
  EXPECT_EQ(arena.use().padding, 18 * kMiB);
}

TEST_F(TieredArena, ConsolidationEmptiesSparsePartitions) {
  ArenaAllocator arena = Make(16);
  const std::vector<Bytes> offsets = AllocateMany(arena, std::size_t{6} * 32, 2 * kMiB);
  // Of each partition's 32 blocks four remain.
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    if (i % 8 != 0) arena.Free(offsets[i]);
  }
  EXPECT_EQ(arena.use().free, 10 * kPartition);
  MoveAll(arena);
  EXPECT_EQ(arena.use().free, 15 * kPartition);
  EXPECT_EQ(arena.use().fragmented(), kPartition - 48 * kMiB);
}

TEST_F(TieredArena, AnySmallBudgetIsKept) {
  ArenaAllocator arena = Make(16);
  const std::vector<Bytes> offsets = AllocateMany(arena, std::size_t{6} * 32, 2 * kMiB);
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    if (i % 8 != 0) arena.Free(offsets[i]);
  }
  EXPECT_TRUE(arena.PlanMoves(7 * kMiB).empty());
  EXPECT_EQ(arena.PlanMoves(8 * kMiB).size(), 4u);
  EXPECT_EQ(arena.PlanMoves(17 * kMiB).size(), 8u);
}

TEST_F(TieredArena, WhatMayNotMoveKeepsItsPartition) {
  ArenaAllocator arena = Make(16);
  const std::vector<Bytes> offsets = AllocateMany(arena, std::size_t{6} * 32, 2 * kMiB);
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    if (i % 8 != 0) arena.Free(offsets[i]);
  }
  const auto others = [&](const PlacedBlock& block) { return block.place.offset != offsets[32]; };
  const std::vector<Move> plan = arena.PlanMoves(~Bytes{0}, others);
  EXPECT_FALSE(plan.empty());
  for (const Move& move : plan) EXPECT_NE(move.from / kPartition, offsets[32] / kPartition);
  EXPECT_TRUE(arena.PlanMoves(~Bytes{0}, [](const PlacedBlock&) { return false; }).empty());
}

TEST_F(TieredArena, WhatIsTakenBackFromAPlanDoesNotRaiseItsBudget) {
  ArenaAllocator arena = Make(4);
  ASSERT_TRUE(arena.Allocate(kFirst, 4 * kMiB, 512));
  const std::vector<Bytes> large = AllocateMany(arena, 3, 20 * kMiB);
  const std::vector<Bytes> small = AllocateMany(arena, std::size_t{2} * 32, 2 * kMiB);
  ASSERT_TRUE(arena.Allocate(kFirst, 17 * kMiB, 512));  // beside the 4 MiB, in the buddies
  arena.Free(large[0]);
  for (std::size_t i = 11; i < 32 + 11; ++i) arena.Free(small[i]);
  // There is a slot for the 17 MiB, but no place for the 4; then 22 MiB could be moved.
  EXPECT_TRUE(arena.PlanMoves(21 * kMiB).empty());
  EXPECT_EQ(arena.PlanMoves(22 * kMiB).size(), 11u);
}

TEST_F(TieredArena, WhatIsTooLargeToMoveDoesNotKeepTheRestFromMoving) {
  ArenaAllocator arena = Make(5);
  const std::vector<Bytes> offsets = AllocateMany(arena, 3, kPartition);
  ASSERT_TRUE(arena.Allocate(kFirst, 2 * kPartition, 512));
  arena.Free(offsets[0]);
  arena.Free(offsets[2]);
  const std::vector<Move> plan = arena.PlanMoves(kPartition);
  ASSERT_EQ(plan.size(), 1u);
  EXPECT_EQ(plan.front(), (Move{kFirst, offsets[1], 0, kPartition}));
}

TEST_F(TieredArena, PartitionsAreSlidIntoTheSmallestRunThatHoldsThem) {
  ArenaAllocator arena = Make(7);
  const std::vector<Bytes> offsets = AllocateMany(arena, 7, kPartition);
  for (const std::size_t i : {0, 1, 2, 4}) arena.Free(offsets[i]);
  const std::vector<Move> plan = arena.PlanMoves(kPartition);
  ASSERT_EQ(plan.size(), 1u);
  EXPECT_EQ(plan.front(), (Move{kFirst, offsets[6], offsets[4], kPartition}));
}

TEST_F(TieredArena, APartitionThatBeginsWithABlockOfAnotherTierIsSlidToo) {
  ArenaAllocator arena = Make(4);
  const std::vector<Bytes> offsets = AllocateMany(arena, 3, kPartition);
  const Bytes head = *arena.Allocate(kSecond, 1 * kMiB, 512);
  ASSERT_TRUE(arena.Allocate(kSecond, 8 * kMiB, 512));
  arena.Free(head);
  ASSERT_EQ(arena.Allocate(kSecond, 2 * kMiB, 512), head);
  arena.Free(offsets[0]);
  arena.Free(offsets[2]);
  MoveAll(arena);
  EXPECT_EQ(PartitionsOf(arena, kSecond), (std::set<Bytes>{0}));
}

TEST_F(TieredArena, ConsolidationBringsFreePartitionsTogether) {
  ArenaAllocator arena = Make(9);
  const std::vector<Bytes> offsets = AllocateMany(arena, 8, kPartition);
  for (std::size_t i = 0; i < offsets.size(); i += 2) arena.Free(offsets[i]);
  EXPECT_EQ(arena.use().largest_request, kPartition);
  EXPECT_FALSE(arena.Allocate(kSecond, 4 * kPartition, 512));
  MoveAll(arena);
  EXPECT_EQ(arena.use().fragmented(), 0u);
  EXPECT_TRUE(arena.Allocate(kSecond, 5 * kPartition, 512));
}

TEST_F(TieredArena, ALargeBlockMovesWithWhatSharesItsTail) {
  ArenaAllocator arena = Make(12);
  const Bytes below = *arena.Allocate(kSecond, 3 * kPartition, 512);
  ASSERT_TRUE(arena.Allocate(kSecond, kPartition, 512));
  ASSERT_TRUE(arena.Allocate(kFirst, 2 * kPartition + 4 * kMiB, 512));
  ASSERT_TRUE(arena.Allocate(kFirst, 32 * kMiB, 512));
  arena.Free(below);
  MoveAll(arena);
  EXPECT_EQ(PartitionsOf(arena, kFirst), (std::set<Bytes>{0, 2}));
  EXPECT_EQ(arena.use().free, 8 * kPartition);
}

TEST_F(TieredArena, APlanThatIsOvertakenBeginsNoMove) {
  ArenaAllocator arena = Make(16);
  const std::vector<Bytes> offsets = AllocateMany(arena, std::size_t{2} * 32, 2 * kMiB);
  for (std::size_t i = 1; i < 32; ++i) arena.Free(offsets[i]);
  arena.Free(offsets[40]);
  const std::vector<Move> plan = arena.PlanMoves(~Bytes{0});
  ASSERT_EQ(plan.size(), 1u);
  EXPECT_EQ(plan.front(), (Move{kFirst, offsets[0], offsets[40], 2 * kMiB}));
  EXPECT_EQ(arena.Allocate(kFirst, 2 * kMiB, 512), offsets[40]);
  EXPECT_FALSE(arena.BeginMove(plan.front()));
}

}  // namespace
}  // namespace torpor::memory
