#include "server/executor/image/arena_backing.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <vector>

#include "memory/range_allocator.h"
#include "server/executor/gpu/device_mapping.h"
#include "tests/server/executor/gpu/fake_cuda.h"

namespace torpor::executor {
namespace {

using Extents = std::vector<memory::Extent>;

constexpr Bytes kChunk = FakeCuda::kChunk;
constexpr Bytes kGuard = memory::RangeAllocator::kGuard;

class ArenaBackingTest : public testing::Test {
 protected:
  ArenaBackingTest()
      : device_(*Device::Open(cuda_.driver(), 0)),
        pool_(*PhysicalPool::Create(*device_, 8 * kChunk, kChunk)),
        arena_(*ArenaMemory::Create(*device_, *pool_)),
        backing_(*arena_, {1}) {}

  Extents Back(const Extents& allocations) { return *backing_.Back(allocations); }
  CUdeviceptr Translate(Bytes offset) const { return backing_.Addresses()->Translate(offset); }
  static memory::ExtentSet Live(const Extents& extents) {
    memory::ExtentSet set;
    for (const memory::Extent& extent : extents) set.Add(extent);
    return set;
  }

  FakeCuda cuda_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<PhysicalPool> pool_;
  std::unique_ptr<ArenaMemory> arena_;
  ArenaBacking backing_;
};

TEST_F(ArenaBackingTest, ABlockIsTheChunksThatAnAllocationTouches) {
  EXPECT_EQ(Back({{0, 512}, {2 * kChunk, 3 * kChunk + 1}}),
            (Extents{{0, kChunk}, {2 * kChunk, 4 * kChunk}}));
  EXPECT_EQ(arena_->use().used, 3 * kChunk);
  EXPECT_EQ(Back({{512, 1024}}), Extents()) << "small ones share a block";
  const CUdeviceptr large = backing_.AddressOf(2 * kChunk);
  EXPECT_EQ(backing_.AddressOf(3 * kChunk), large + kChunk) << "in one piece";
}

TEST_F(ArenaBackingTest, APointerBehindTheEndBelongsToWhatIsBeforeIt) {
  // As the allocator lays them out: the second begins where the first one's guard ends, at most.
  memory::RangeAllocator range(64 * kMiB, kChunk, memory::RangeAllocator::Layout::kApart);
  const memory::Block first = *range.Allocate(kChunk);
  const memory::Block second = *range.Allocate(kChunk);
  Back({{first.offset, first.end()}});
  Back({{second.offset, second.end()}});
  const CUdeviceptr begin = Translate(first.offset);
  EXPECT_EQ(Translate(first.end()), begin + kChunk);
  EXPECT_EQ(Translate(first.end() + kGuard - 1), begin + kChunk + kGuard - 1);
  EXPECT_EQ(Translate(first.end() + kGuard), 0u) << "nobody's";
  EXPECT_EQ(Translate(second.end() - 1) - Translate(second.offset), kChunk - 1);
}

TEST_F(ArenaBackingTest, APointerToNothingIsNone) {
  EXPECT_EQ(Translate(0), 0u);
  Back({{kChunk, kChunk + 1}});
  EXPECT_EQ(Translate(kChunk - 1), 0u);
  EXPECT_NE(Translate(kChunk), 0u);
}

TEST_F(ArenaBackingTest, ThereIsAnotherTableWhenABlockHasComeOrGone) {
  Back({{0, 1}});
  const std::shared_ptr<const AddressTable> first = backing_.Addresses();
  EXPECT_EQ(first->version(), backing_.addresses_version());
  Back({{100, 200}});
  EXPECT_EQ(backing_.Addresses(), first) << "in the block that there is";
  Back({{4 * kChunk, 5 * kChunk}});
  EXPECT_NE(first->version(), backing_.addresses_version());
  const std::shared_ptr<const AddressTable> second = backing_.Addresses();
  EXPECT_NE(second->Translate(4 * kChunk), 0u);
  EXPECT_EQ(first->Translate(4 * kChunk), 0u) << "who has a table keeps it";
  ASSERT_TRUE(backing_.Release({4 * kChunk, 5 * kChunk}, Live({{0, 1}})).ok());
  EXPECT_NE(second->version(), backing_.addresses_version());
  EXPECT_EQ(Translate(4 * kChunk), 0u);
}

TEST_F(ArenaBackingTest, ThereIsAnotherTableWhenABlockHasMoved) {
  Back({{0, 1}});
  Back({{4 * kChunk, 4 * kChunk + 1}});
  ASSERT_TRUE(backing_.Release({0, 1}, Live({{4 * kChunk, 4 * kChunk + 1}})).ok());
  const CUdeviceptr before = Translate(4 * kChunk);
  const std::uint64_t version = backing_.addresses_version();
  const std::vector<memory::Move> moves = arena_->PlanMoves({{1}}, 64 * kMiB);
  ASSERT_EQ(moves.size(), 1u);
  ASSERT_TRUE(*backing_.Move(moves.front(), *device_->CreateStream()));
  EXPECT_NE(backing_.addresses_version(), version);
  EXPECT_NE(Translate(4 * kChunk), before);
  EXPECT_EQ(Translate(4 * kChunk), backing_.AddressOf(4 * kChunk));
}

TEST_F(ArenaBackingTest, AnExtentIsCutWhereBlocksMeet) {
  Back({{0, 1}});
  Back({{kChunk, kChunk + 1}});
  const std::vector<BackedPart> parts = backing_.PartsOf({100, kChunk + 100});
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].extent, (memory::Extent{100, kChunk}));
  EXPECT_EQ(parts[0].address, backing_.AddressOf(100));
  EXPECT_EQ(parts[1].extent, (memory::Extent{kChunk, kChunk + 100}));
  EXPECT_EQ(parts[1].address, backing_.AddressOf(kChunk));
}

TEST_F(ArenaBackingTest, GivesABlockBackWhenNothingInItIsLive) {
  Back({{0, 512}, {kChunk, 3 * kChunk}});
  ASSERT_TRUE(backing_.Release({0, 512}, Live({{512, 1024}, {kChunk, 3 * kChunk}})).ok());
  EXPECT_EQ(arena_->use().used, 3 * kChunk);
  ASSERT_TRUE(backing_.Release({kChunk, 3 * kChunk}, Live({{512, 1024}})).ok());
  EXPECT_EQ(arena_->use().used, kChunk);
  ASSERT_TRUE(backing_.Release({0, 64 * kMiB}, {}).ok());
  EXPECT_TRUE(backing_.empty());
  EXPECT_EQ(arena_->use().used, 0u);
}

TEST_F(ArenaBackingTest, HasAllOrNothing) {
  const Extents too_much = {{0, 512}, {kChunk, 9 * kChunk}};
  EXPECT_TRUE(absl::IsResourceExhausted(backing_.Back(too_much).status()));
  EXPECT_TRUE(backing_.empty());
  EXPECT_EQ(arena_->use().used, 0u);
}

TEST_F(ArenaBackingTest, BlocksDoNotOverlap) {
  Back({{0, 512}});
  const Extents wider = {{0, kChunk + 1}};
  EXPECT_TRUE(absl::IsFailedPrecondition(backing_.Back(wider).status()));
}

TEST_F(ArenaBackingTest, OtherGpusNeedTheOtherMode) {
  struct Nobody final : ChunkOwner {
    absl::StatusOr<std::map<std::uint64_t, UniqueFd>> Fetch(
        const std::vector<std::uint64_t>&) override {
      return absl::InternalError("nobody asks");
    }
  } nobody;
  EXPECT_TRUE(absl::IsFailedPrecondition(backing_.Import(Live({{0, 1}}), nobody).status()));
  EXPECT_TRUE(backing_.Import({}, nobody).ok()) << "to let go of nothing";
}

TEST_F(ArenaBackingTest, OtherGpusMayCopyItsChunks) {
  Back({{0, 512}, {2 * kChunk, 4 * kChunk}});
  const auto handle = backing_.HandleOf(3);
  ASSERT_TRUE(handle.ok()) << handle.status();
  EXPECT_TRUE(pool_->NumberOf(*handle).has_value());
  const absl::StatusOr<UniqueFd> chunk = ExportMemory(*device_, *handle);
  ASSERT_TRUE(chunk.ok()) << chunk.status();
  reinterpret_cast<std::uint8_t*>(backing_.AddressOf(3 * kChunk))[5] = 42;
  std::uint8_t byte = 0;
  EXPECT_EQ(pread(chunk->get(), &byte, 1, 5), 1);
  EXPECT_EQ(byte, 42);
  EXPECT_TRUE(absl::IsNotFound(backing_.HandleOf(1).status())) << "nothing is there";
}

TEST_F(ArenaBackingTest, WhatIsPiecedTogetherIsNotCopied) {
  Back({{0, kChunk}, {kChunk, 2 * kChunk}, {2 * kChunk, 3 * kChunk}, {3 * kChunk, 4 * kChunk}});
  Back({{4 * kChunk, 5 * kChunk}, {5 * kChunk, 6 * kChunk}, {6 * kChunk, 8 * kChunk}});
  ASSERT_TRUE(backing_.Release({0, kChunk}, {}).ok());
  ASSERT_TRUE(backing_.Release({2 * kChunk, 3 * kChunk}, {}).ok());
  Back({{16 * kChunk, 18 * kChunk}});
  EXPECT_TRUE(absl::IsNotFound(backing_.HandleOf(16).status()));
}

}  // namespace
}  // namespace torpor::executor
