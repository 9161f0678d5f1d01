#include "memory/arena_allocator.h"

#include <gtest/gtest.h>

#include <iterator>
#include <random>

#include "tests/memory/checked_arena.h"

namespace torpor::memory {
namespace {

constexpr Owner kFirst{1};
constexpr Owner kSecond{2};

// What every allocator of an arena must do.
class ArenaConformance : public testing::TestWithParam<ArenaKind> {
 protected:
  ~ArenaConformance() override {
    arena_.Check();
    arena_.Consolidate();
    arena_.Check();
    EXPECT_EQ(arena_.error(), "");
  }

  Bytes MustAllocate(Owner owner, Bytes bytes, Bytes alignment = 1) {
    const std::optional<Bytes> offset = arena_.Allocate(owner, bytes, alignment);
    EXPECT_TRUE(offset);
    return offset.value_or(0);
  }
  // Blocks of two owners with gaps between them.
  void Scatter() {
    for (unsigned i = 0; i < 200; ++i) arena_.Allocate(Owner{1 + i % 7}, 1 + i * 37, 1);
    for (std::uint64_t owner = 1; owner < 6; ++owner) arena_.FreeAll(Owner{owner});
  }
  // Plans moves and begins ten, where the arena can move blocks.
  void BeginMoves() {
    arena_.BeginMoves(~Bytes{0}, 10);
    EXPECT_EQ(use().moving > 0, GetParam().moves);
  }
  ArenaUse use() const { return arena_.allocator().use(); }

  CheckedArena arena_{GetParam().make(), GetParam().partition_bytes};
};

TEST_P(ArenaConformance, AnEmptyArenaIsFreeInOnePiece) {
  EXPECT_EQ(use().capacity, kTestArenaBytes);
  EXPECT_EQ(use().free, kTestArenaBytes);
  EXPECT_EQ(use().largest_request, kTestArenaBytes);
  EXPECT_EQ(use().fragmented(), 0u);
}

TEST_P(ArenaConformance, ServesABlockOfTheWholeArena) {
  const Bytes offset = MustAllocate(kFirst, kTestArenaBytes);
  EXPECT_FALSE(arena_.Allocate(kSecond, 1, 1));
  arena_.Free(offset);
  MustAllocate(kSecond, kTestArenaBytes);
}

TEST_P(ArenaConformance, RefusesNothingAndTooMuch) {
  EXPECT_FALSE(arena_.Allocate(kFirst, 0, 1));
  EXPECT_FALSE(arena_.Allocate(kFirst, kTestArenaBytes + 1, 1));
  EXPECT_FALSE(arena_.Allocate(kFirst, ~Bytes{0}, 1));
  EXPECT_FALSE(arena_.Allocate(kFirst, 1, Bytes{1} << 63));
  EXPECT_EQ(use().free, kTestArenaBytes);
}

TEST_P(ArenaConformance, KeepsAlignments) {
  for (Bytes alignment = 1; alignment <= kTestArenaBytes / 8; alignment *= 2) {
    EXPECT_EQ(MustAllocate(kFirst, 700, alignment) % alignment, 0u);
  }
}

TEST_P(ArenaConformance, FreesByBeginOnly) {
  const Bytes offset = MustAllocate(kFirst, 3000);
  arena_.Free(offset + 512);
  EXPECT_EQ(arena_.allocator().block_count(), 1u);
  arena_.Free(offset);
  arena_.Free(offset);
  EXPECT_EQ(arena_.allocator().block_count(), 0u);
}

TEST_P(ArenaConformance, FreesAllOfAnOwnerAndNothingElse) {
  for (int i = 0; i < 10; ++i) {
    MustAllocate(kFirst, 5000);
    MustAllocate(kSecond, 3000);
  }
  EXPECT_EQ(arena_.allocator().used_by(kFirst), 50'000u);
  arena_.FreeAll(kFirst);
  EXPECT_EQ(arena_.allocator().used_by(kFirst), 0u);
  EXPECT_EQ(arena_.allocator().used_by(kSecond), 30'000u);
  arena_.FreeAll(kFirst);
  arena_.Check();
  arena_.FreeAll(kSecond);
  EXPECT_EQ(use().largest_request, kTestArenaBytes);
}

TEST_P(ArenaConformance, GivesOutAllOfItInSmallBlocks) {
  std::size_t blocks = 0;
  while (arena_.Allocate(kFirst, 512, 512)) ++blocks;
  EXPECT_GE(blocks, kTestArenaBytes / 2048);
  arena_.Check();
  arena_.FreeAll(kFirst);
}

TEST_P(ArenaConformance, HoldsBothPlacesOfAMove) {
  Scatter();
  BeginMoves();
  arena_.Check();
  while (arena_.Allocate(kFirst, 512, 1)) continue;
  arena_.Check();
  arena_.EndAllMoves();
}

TEST_P(ArenaConformance, ABlockFreedWhileItMovesLeavesBothPlacesHeld) {
  Scatter();
  BeginMoves();
  arena_.FreeAll(Owner{6});
  arena_.FreeAll(Owner{7});
  arena_.Check();
  arena_.AbandonMove();
  arena_.Check();
  arena_.EndAllMoves();
  EXPECT_EQ(use().used + use().padding + use().moving, 0u);
}

TEST_P(ArenaConformance, AnAbandonedPlanLeavesEverythingInItsPlace) {
  Scatter();
  const ArenaUse before = use();
  BeginMoves();
  while (use().moving > 0) arena_.AbandonMove();
  EXPECT_EQ(use().free, before.free);
  EXPECT_EQ(use().largest_request, before.largest_request);
}

TEST_P(ArenaConformance, SurvivesAnyOrderOfThings) {
  std::mt19937 random(7);
  for (int step = 0; step < 6000 && arena_.error().empty(); ++step) {
    const auto choice = random() % 100;
    const Owner owner{1 + random() % 9};
    if (choice < 55) {
      arena_.Allocate(owner, 1 + (random() % (1u << random() % 18)), Bytes{1} << random() % 14);
    } else if (choice < 85 && !arena_.live().empty()) {
      const auto some = std::next(arena_.live().begin(),
                                  static_cast<std::ptrdiff_t>(random() % arena_.live().size()));
      arena_.Free(some->first);
    } else if (choice < 88) {
      arena_.FreeAll(owner);
    } else if (choice < 91) {
      arena_.BeginMoves(random() % kTestArenaBytes, random() % 8);
    } else if (choice < 98) {
      arena_.CommitMove();
    } else {
      arena_.AbandonMove();
    }
    if (step % 10 == 0) arena_.Check();
  }
}

INSTANTIATE_TEST_SUITE_P(Arenas, ArenaConformance, testing::ValuesIn(ArenaKinds()),
                         [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace torpor::memory
