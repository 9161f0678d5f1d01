#include "server/executor/image/arena_memory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <vector>

#include "tests/server/executor/gpu/fake_cuda.h"

namespace torpor::executor {
namespace {

constexpr Bytes kChunk = FakeCuda::kChunk;
constexpr SessionId kSession{1};
constexpr SessionId kOther{2};

class ArenaMemoryTest : public testing::Test {
 protected:
  ArenaMemoryTest()
      : device_(*Device::Open(cuda_.driver(), 0)),
        pool_(*PhysicalPool::Create(*device_, 8 * kChunk, kChunk)) {
    pool_->Return(*pool_->Take(8));  // waits until the pool is full
    arena_ = *ArenaMemory::Create(*device_, *pool_);
  }

  ArenaMemory::Place Take(Bytes bytes, SessionId session = kSession) {
    return *arena_->Take(session, bytes);
  }
  static std::uint8_t* At(const ArenaMemory::Place& place, Bytes offset) {
    return reinterpret_cast<std::uint8_t*>(place.address + offset);
  }

  FakeCuda cuda_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<PhysicalPool> pool_;
  std::unique_ptr<ArenaMemory> arena_;
};

TEST_F(ArenaMemoryTest, MapsAChunkOnceAndForEver) {
  const ArenaMemory::Place place = Take(3 * kChunk);
  std::memset(At(place, 0), 1, 3 * kChunk);
  ASSERT_TRUE(arena_->Give(place).ok());
  const std::size_t mapped = cuda_.mapped_chunks();
  EXPECT_GE(mapped, 3u);
  const ArenaMemory::Place again = Take(3 * kChunk);
  EXPECT_EQ(cuda_.mapped_chunks(), mapped);
  EXPECT_EQ(*At(again, kChunk), 1) << "whoever takes it clears it";
  ASSERT_TRUE(arena_->Give(again).ok());
}

TEST_F(ArenaMemoryTest, CanBeMappedBeforehand) {
  arena_->StartMapping();
  arena_.reset();
  EXPECT_EQ(cuda_.mapped_chunks(), 0u);
  EXPECT_EQ(pool_->free_chunks(), 8u);
}

TEST_F(ArenaMemoryTest, GivesAllOfItAndNoMore) {
  EXPECT_EQ(arena_->capacity(), 8 * kChunk);
  std::vector<ArenaMemory::Place> places;
  places.reserve(8);
  std::set<CUdeviceptr> addresses;
  for (int i = 0; i < 8; ++i) {
    places.push_back(Take(kChunk));
    addresses.insert(places.back().address);
  }
  EXPECT_EQ(addresses.size(), 8u);
  EXPECT_TRUE(absl::IsResourceExhausted(arena_->Take(kSession, kChunk).status()));
  for (const ArenaMemory::Place& place : places) ASSERT_TRUE(arena_->Give(place).ok());
  EXPECT_EQ(arena_->use().used, 0u);
}

TEST_F(ArenaMemoryTest, WhatIsInPiecesServesNevertheless) {
  std::vector<ArenaMemory::Place> places;
  places.reserve(8);
  for (int i = 0; i < 8; ++i) places.push_back(Take(kChunk));
  std::vector<ArenaMemory::Place> kept;
  for (std::size_t i = 0; i < 8; ++i) {
    const bool is_odd = (places[i].address / kChunk) % 2 == 1;
    if (is_odd) {
      *At(places[i], 0) = 7;
      kept.push_back(places[i]);
    } else {
      ASSERT_TRUE(arena_->Give(places[i]).ok());
    }
  }
  const ArenaMemory::Place pieced = Take(4 * kChunk, kOther);
  EXPECT_EQ(pieced.pieces.size(), 4u);
  std::memset(At(pieced, 0), 9, 4 * kChunk);
  for (const ArenaMemory::Place& place : kept) EXPECT_EQ(*At(place, 0), 7);
  EXPECT_TRUE(absl::IsResourceExhausted(arena_->Take(kOther, kChunk).status()));
  const std::size_t mapped = cuda_.mapped_chunks();
  ASSERT_TRUE(arena_->Give(pieced).ok());
  EXPECT_EQ(cuda_.mapped_chunks(), mapped - 4) << "only the second mapping goes";
  for (const ArenaMemory::Place& place : kept) ASSERT_TRUE(arena_->Give(place).ok());
  const ArenaMemory::Place whole = Take(8 * kChunk);
  EXPECT_EQ(whole.pieces.size(), 1u);
  ASSERT_TRUE(arena_->Give(whole).ok());
}

TEST_F(ArenaMemoryTest, MemoryThatTheDriverDoesNotGiveIsAnError) {
  arena_.reset();
  pool_.reset();
  cuda_.LimitChunks(2);
  pool_ = *PhysicalPool::Create(*device_, 8 * kChunk, kChunk);
  arena_ = *ArenaMemory::Create(*device_, *pool_);
  EXPECT_TRUE(absl::IsResourceExhausted(arena_->Take(kSession, 8 * kChunk).status()));
  EXPECT_EQ(arena_->use().used, 0u);
}

TEST_F(ArenaMemoryTest, ChunksAreAPowerOfTwo) {
  const auto odd = *PhysicalPool::Create(*device_, 18 * kMiB, 6 * kMiB);
  EXPECT_TRUE(absl::IsInvalidArgument(ArenaMemory::Create(*device_, *odd).status()));
}

TEST_F(ArenaMemoryTest, PartitionsHaveTheSlotsThatAreNamed) {
  const auto large = *PhysicalPool::Create(*device_, kGiB, kChunk);
  const auto padding_of = [&](const std::vector<Bytes>& slot_sizes, Bytes bytes) {
    const auto arena = *ArenaMemory::Create(*device_, *large, slot_sizes);
    const ArenaMemory::Place place = *arena->Take(kSession, bytes);
    const Bytes padding = arena->use().padding;
    EXPECT_TRUE(arena->Give(place).ok());
    return padding;
  };
  EXPECT_EQ(padding_of({}, 18 * kMiB), 0u) << "buddies are trimmed";
  EXPECT_EQ(padding_of({20 * kMiB}, 18 * kMiB), 2 * kMiB);
  EXPECT_EQ(padding_of({20 * kMiB, 2 * kMiB}, 18 * kMiB), 2 * kMiB) << "in any order";
  EXPECT_EQ(padding_of({32 * kMiB}, 18 * kMiB), 14 * kMiB);
}

TEST_F(ArenaMemoryTest, SlotsThatDoNotFitAreLeftOutUnlessTheyAreNamed) {
  // Its partitions are a chunk.
  const absl::Status status = ArenaMemory::Create(*device_, *pool_, {{20 * kMiB}}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(
      status.message(),
      "partition_sizes: 20971520 bytes do not fit this GPU, whose arena of 16777216 bytes has "
      "partitions of 2097152 in chunks of 2097152; leave that size out, or write auto");
  EXPECT_TRUE(ArenaMemory::Create(*device_, *pool_, {{kChunk}}).ok());
}

TEST_F(ArenaMemoryTest, LargeArenasKeepBackWhatSlotsLeaveOver) {
  const auto large = *PhysicalPool::Create(*device_, kGiB, 2 * kChunk);
  EXPECT_EQ((*ArenaMemory::Create(*device_, *large))->capacity(), kGiB / 64 * 60);
  EXPECT_EQ((*ArenaMemory::Create(*device_, *large, {{32 * kMiB}}))->capacity(), kGiB);
}

}  // namespace
}  // namespace torpor::executor
