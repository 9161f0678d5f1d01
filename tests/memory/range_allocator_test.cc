#include "memory/range_allocator.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <random>
#include <vector>

#include "tests/memory/range_allocator_model.h"

namespace torpor::memory {
namespace {

constexpr Bytes kChunk = 2 * kMiB;
using Layout = RangeAllocator::Layout;

TEST(RangeAllocator, RoundsToItsAlignment) {
  RangeAllocator allocator(16 * kMiB, kChunk);
  const std::optional<Block> first = allocator.Allocate(1);
  const std::optional<Block> second = allocator.Allocate(513);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->bytes, 512u);
  EXPECT_EQ(second->offset, first->offset + 512);
  EXPECT_EQ(second->bytes, 1024u);
  EXPECT_EQ(allocator.live_bytes(), 1536u);
  EXPECT_EQ(allocator.occupied_bytes(), kChunk);
}

TEST(RangeAllocator, RefusesNothingAndTooMuch) {
  RangeAllocator allocator(16 * kMiB, kChunk);
  EXPECT_FALSE(allocator.Allocate(0));
  EXPECT_FALSE(allocator.Allocate(16 * kMiB + 1));
  EXPECT_FALSE(allocator.Allocate(~Bytes{0}));
  EXPECT_TRUE(allocator.Allocate(16 * kMiB));
  EXPECT_FALSE(allocator.Allocate(1));
}

TEST(RangeAllocator, RangesComeLaterAndNeighboursAreOne) {
  for (const Layout layout : {Layout::kDense, Layout::kApart}) {
    RangeAllocator allocator(kChunk, layout);
    EXPECT_FALSE(allocator.Allocate(1));
    allocator.AddRange({kGiB, 4 * kMiB});
    const Block first = *allocator.Allocate(3 * kMiB);
    EXPECT_EQ(first.offset, kGiB);
    EXPECT_FALSE(allocator.Allocate(5 * kMiB));
    EXPECT_EQ(allocator.RoomFor(5 * kMiB), 6 * kMiB);
    allocator.AddRange({8 * kGiB, 4 * kMiB});
    EXPECT_FALSE(allocator.Allocate(5 * kMiB)) << "nowhere in one piece";
    allocator.AddRange({8 * kGiB + 4 * kMiB, 4 * kMiB});
    const Block across = *allocator.Allocate(5 * kMiB);
    EXPECT_EQ(across.offset, 8 * kGiB);
    EXPECT_EQ(allocator.OccupiedBlocks(),
              (std::vector<Block>{{kGiB, 4 * kMiB}, {8 * kGiB, 6 * kMiB}}));
    EXPECT_EQ(allocator.EmptiedChunks(*allocator.Free(across.offset)), (Block{8 * kGiB, 6 * kMiB}));
    EXPECT_EQ(allocator.occupied_bytes(), 4 * kMiB);
  }
}

TEST(RangeAllocator, AFreedPieceEmptiesTheChunksThatNobodyShares) {
  RangeAllocator allocator(16 * kMiB, kChunk);
  const Block first = *allocator.Allocate(3 * kMiB);
  const Block middle = *allocator.Allocate(6 * kMiB);
  const Block last = *allocator.Allocate(2 * kMiB);
  EXPECT_EQ(allocator.EmptiedChunks(*allocator.Free(middle.offset)), (Block{4 * kMiB, 4 * kMiB}));
  EXPECT_EQ(allocator.EmptiedChunks(*allocator.Free(first.offset)), (Block{0, 4 * kMiB}));
  EXPECT_EQ(allocator.EmptiedChunks(*allocator.Free(last.offset)), (Block{8 * kMiB, 4 * kMiB}));
  const Block small = *allocator.Allocate(512);
  const Block other = *allocator.Allocate(512);
  EXPECT_EQ(allocator.EmptiedChunks(*allocator.Free(small.offset)).bytes, 0u);
  EXPECT_EQ(allocator.EmptiedChunks(*allocator.Free(other.offset)).bytes, kChunk);
}

TEST(RangeAllocator, APieceHasTheChunksThatNobodySharesToItself) {
  RangeAllocator allocator(16 * kMiB, kChunk);
  const Block first = *allocator.Allocate(3 * kMiB);
  EXPECT_EQ(allocator.OwnChunks(first), (Block{0, 4 * kMiB}));
  const Block second = *allocator.Allocate(3 * kMiB);
  EXPECT_EQ(allocator.OwnChunks(first), (Block{0, 2 * kMiB}));
  EXPECT_EQ(allocator.OwnChunks(second), (Block{4 * kMiB, 2 * kMiB}));
  const Block small = *allocator.Allocate(512);
  EXPECT_EQ(allocator.OwnChunks(small), (Block{6 * kMiB, 2 * kMiB}));
  allocator.Allocate(512);
  EXPECT_EQ(allocator.OwnChunks(small).bytes, 0u);
}

TEST(RangeAllocator, FreeWantsTheBegin) {
  RangeAllocator allocator(16 * kMiB, kChunk);
  const Block block = *allocator.Allocate(4096);
  EXPECT_FALSE(allocator.Free(block.offset + 512));
  EXPECT_EQ(allocator.Free(block.offset), block);
  EXPECT_FALSE(allocator.Free(block.offset));
}

TEST(RangeAllocator, FindsLivePiecesByTheirBegin) {
  RangeAllocator allocator(16 * kMiB, kChunk);
  const Block block = *allocator.Allocate(3 * kMiB);
  EXPECT_EQ(allocator.Find(block.offset), block);
  EXPECT_FALSE(allocator.Find(block.offset + 512));
  allocator.Free(block.offset);
  EXPECT_FALSE(allocator.Find(block.offset));
}

TEST(RangeAllocator, SmallPiecesShareChunksOfTheirOwn) {
  RangeAllocator allocator(64 * kMiB, kChunk);
  const Block small = *allocator.Allocate(512);
  const Block large = *allocator.Allocate(4 * kMiB);
  const Block other_small = *allocator.Allocate(512);
  EXPECT_NE(small.offset / kChunk, large.offset / kChunk);
  EXPECT_EQ(small.offset / kChunk, other_small.offset / kChunk);
  allocator.Free(large.offset);
  EXPECT_EQ(allocator.occupied_bytes(), kChunk);
}

TEST(RangeAllocator, EmptyChunkOfSmallPiecesServesLargeOnes) {
  RangeAllocator allocator(kChunk, kChunk);
  const Block a = *allocator.Allocate(512);
  const Block b = *allocator.Allocate(512);
  EXPECT_FALSE(allocator.Allocate(kChunk));
  allocator.Free(a.offset);
  allocator.Free(b.offset);
  EXPECT_TRUE(allocator.Allocate(kChunk));
}

TEST(RangeAllocator, FreedNeighboursCoalesce) {
  RangeAllocator allocator(12 * kMiB, kChunk);
  const Block a = *allocator.Allocate(4 * kMiB);
  const Block b = *allocator.Allocate(4 * kMiB);
  const Block c = *allocator.Allocate(4 * kMiB);
  allocator.Free(a.offset);
  allocator.Free(c.offset);
  EXPECT_FALSE(allocator.Allocate(6 * kMiB));
  allocator.Free(b.offset);
  EXPECT_TRUE(allocator.Allocate(12 * kMiB));
}

TEST(RangeAllocator, BlocksAreJoinedAndBounded) {
  RangeAllocator allocator(64 * kMiB, kChunk);
  const Block a = *allocator.Allocate(512);
  const Block b = *allocator.Allocate(512);
  const Block c = *allocator.Allocate(512);
  EXPECT_EQ(allocator.LiveBlocks(10), (std::vector<Block>{{a.offset, 1536}}));
  allocator.Free(b.offset);
  EXPECT_EQ(allocator.LiveBlocks(10), (std::vector<Block>{a, c}));
  EXPECT_EQ(allocator.LiveBlocks(1), (std::vector<Block>{{0, kChunk}}));
}

TEST(RangeAllocator, ApartEachChunkIsOfOneLargePieceOrOfSmallOnes) {
  constexpr Bytes kGuard = RangeAllocator::kGuard;
  RangeAllocator allocator(64 * kMiB, kChunk, Layout::kApart);
  const Block a = *allocator.Allocate(3 * kMiB);
  const Block b = *allocator.Allocate(kChunk);
  const Block c = *allocator.Allocate(2 * kChunk - kGuard);
  const Block small = *allocator.Allocate(512);
  const Block other = *allocator.Allocate(512);
  EXPECT_EQ(a, (Block{0, 3 * kMiB}));
  EXPECT_EQ(b, (Block{2 * kChunk, kChunk}));
  EXPECT_EQ(c, (Block{4 * kChunk, 2 * kChunk - kGuard})) << "a chunk of addresses is the guard";
  EXPECT_EQ(small.offset, 6 * kChunk);
  EXPECT_EQ(other.offset, small.end());
  EXPECT_EQ(allocator.occupied_bytes(), 6 * kChunk);
  for (const Block& block : {a, b, c, small, other}) ASSERT_TRUE(allocator.Free(block.offset));
  EXPECT_EQ(allocator.Allocate(64 * kMiB - kGuard), (Block{0, 64 * kMiB - kGuard})) << "all free";
}

TEST(RangeAllocator, ApartNobodyHasTheEndOfAChunkOfSmallPieces) {
  RangeAllocator allocator(64 * kMiB, kChunk, Layout::kApart);
  constexpr Bytes kPiece = 512 * kKiB;
  for (Bytes i = 0; i < 3; ++i) EXPECT_EQ(allocator.Allocate(kPiece)->offset, i * kPiece);
  EXPECT_EQ(allocator.Allocate(kPiece)->offset, kChunk);
  EXPECT_EQ(allocator.Allocate(kPiece - RangeAllocator::kGuard)->offset, 3 * kPiece);
}

TEST(RangeAllocator, ApartBlocksAreNeverJoinedToMoreThanAChunk) {
  RangeAllocator allocator(64 * kMiB, kChunk, Layout::kApart);
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(allocator.Allocate(600 * kKiB));
  const Block large = *allocator.Allocate(5 * kMiB);
  EXPECT_EQ(allocator.LiveBlocks(2), (std::vector<Block>{{0, kChunk}, {kChunk, kChunk}, large}));
}

class RangeAllocatorOfAnyLayout : public testing::TestWithParam<Layout> {};

// As a daemon does with the allocations of an earlier one.
TEST_P(RangeAllocatorOfAnyLayout, AllocatesAgainWhatAnotherHasAllocated) {
  constexpr Bytes kChunk = 2 * kMiB;
  RangeAllocator first(kChunk, GetParam());
  first.AddRange({0, 64 * kMiB});
  std::vector<Block> pieces;
  for (const Bytes bytes : {Bytes{512}, 3 * kMiB, 300 * kKiB, 2 * kMiB, 900 * kKiB, 5 * kMiB}) {
    pieces.push_back(*first.Allocate(bytes));
  }
  first.Free(pieces[1].offset);
  pieces.erase(pieces.begin() + 1);
  RangeAllocator second(kChunk, GetParam());
  second.AddRange({0, 64 * kMiB});
  for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece) {
    EXPECT_TRUE(second.AllocateAt(*piece));
    EXPECT_FALSE(second.AllocateAt(*piece)) << "it is in use";
  }
  EXPECT_EQ(second.Blocks(), first.Blocks());
  EXPECT_EQ(second.live_bytes(), first.live_bytes());
  EXPECT_EQ(second.occupied_bytes(), first.occupied_bytes());
  for (const Block& piece : pieces) EXPECT_TRUE(second.Free(piece.offset));
  EXPECT_EQ(second.occupied_bytes(), 0u);
  EXPECT_TRUE(second.Allocate(60 * kMiB)) << "all is in one piece again";
}

TEST(RangeAllocator, AllocatesNothingOutsideOfItsRanges) {
  RangeAllocator allocator(2 * kMiB);
  allocator.AddRange({4 * kMiB, 4 * kMiB});
  EXPECT_FALSE(allocator.AllocateAt({0, 512}));
  EXPECT_FALSE(allocator.AllocateAt({6 * kMiB, 4 * kMiB}));
  EXPECT_FALSE(allocator.AllocateAt({4 * kMiB, 0}));
  EXPECT_FALSE(allocator.AllocateAt({4 * kMiB, 100}));
  EXPECT_FALSE(allocator.AllocateAt({~Bytes{0} - 511, 512}));
  EXPECT_TRUE(allocator.AllocateAt({4 * kMiB, 4 * kMiB}));
}

INSTANTIATE_TEST_SUITE_P(Layouts, RangeAllocatorOfAnyLayout,
                         testing::Values(Layout::kDense, Layout::kApart));

TEST_P(RangeAllocatorOfAnyLayout, AgreesWithANaiveModel) {
  std::mt19937 random(1);
  RangeAllocator allocator(256 * kMiB, kChunk, GetParam());
  RangeAllocatorModel model(256 * kMiB, kChunk);
  for (int step = 0; step < 4000; ++step) {
    if (random() % 5 < 3 || model.live().empty()) {
      const Bytes bytes = Bytes{1} << (random() % 25);
      const Bytes wanted = bytes + random() % bytes;
      if (const auto block = allocator.Allocate(wanted)) {
        ASSERT_EQ(model.OnAllocated(wanted, *block), "") << "step " << step;
      }
    } else {
      const auto victim = std::next(model.live().begin(),
                                    static_cast<std::ptrdiff_t>(random() % model.live().size()));
      const Bytes offset = victim->first;
      ASSERT_TRUE(allocator.Free(offset));
      model.OnFreed(offset);
    }
    if (step % 50 == 0) {
      ASSERT_EQ(model.Compare(allocator), "") << "step " << step;
    }
  }
}

}  // namespace
}  // namespace torpor::memory
