// Executors of several domains that take chunks of one owner, through its socket.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "server/executor/gpu/packet_socket.h"
#include "tests/server/executor/image/pool_owner_fixture.h"

namespace torpor::executor {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

class PoolLendingTest : public PoolOwnerFixture {
 protected:
  using Chunks = std::vector<CUmemGenericAllocationHandle>;

  // An executor that has taken nothing yet.
  struct Executor {
    std::unique_ptr<PoolClient> client;
    std::unique_ptr<PhysicalPool> pool;
  };
  Executor Start(std::optional<std::uint64_t> domain = std::nullopt) {
    Executor made;
    made.client = Client();
    made.pool = *PhysicalPool::Import(*device_, *made.client);
    if (domain) made.pool->SetDomain(*domain);
    return made;
  }
  // Takes chunks, fills them with `byte`, and gives them back.
  void Fill(PhysicalPool& pool, std::size_t count, std::uint8_t byte) {
    const Chunks chunks = *pool.Take(count);
    for (const CUmemGenericAllocationHandle chunk : chunks) std::memset(Map(chunk), byte, kChunk);
    UnmapAll();
    pool.Return(chunks);
  }
  // Takes chunks, and returns each different byte of each; gives the chunks back.
  std::vector<std::uint8_t> BytesIn(PhysicalPool& pool, std::size_t count) {
    const Chunks chunks = *pool.Take(count);
    std::vector<std::uint8_t> bytes;
    for (const CUmemGenericAllocationHandle chunk : chunks) {
      const std::span<const std::uint8_t> all(Map(chunk), kChunk);
      std::unique_copy(all.begin(), all.end(), std::back_inserter(bytes));
    }
    UnmapAll();
    pool.Return(chunks);
    return bytes;
  }
  PoolReply AskRaw(const UniqueFd& connection, const PoolRequest& request) {
    PoolReply reply;
    EXPECT_TRUE(Ask(connection, "the owner", std::as_bytes(std::span(&request, 1)),
                    std::as_writable_bytes(std::span(&reply, 1)))
                    .ok());
    return reply;
  }
};

TEST_F(PoolLendingTest, AChunkIsOneExecutorsAtATime) {
  StartOwner();
  const Executor one = Start(1);
  const Executor other = Start(1);
  const Chunks first = *one.pool->Take(4);
  const absl::StatusOr<Chunks> refused = other.pool->Take(3);
  EXPECT_TRUE(absl::IsResourceExhausted(refused.status()));
  EXPECT_THAT(refused.status().message(), HasSubstr("has 2 free chunks of 2097152 bytes, 3 are"));
  const Chunks second = *other.pool->Take(2);
  for (const CUmemGenericAllocationHandle chunk : second) {
    const auto number = *other.pool->NumberOf(chunk);
    EXPECT_TRUE(std::ranges::none_of(first, [&](CUmemGenericAllocationHandle taken) {
      return *one.pool->NumberOf(taken) == number;
    }));
  }
  EXPECT_EQ(one.pool->free_chunks(), 2u) << "as of the owner's last answer";
  EXPECT_EQ(other.pool->free_bytes(), 0u);
  one.pool->Return(first);
  other.pool->Return(second);
  EXPECT_EQ(other.pool->free_chunks(), kChunks);
}

TEST_F(PoolLendingTest, NoDomainSeesAnothersBytes) {
  StartOwner();
  const Executor one = Start(1);
  const Executor two = Start(2);
  for (int round = 0; round < 2; ++round) {
    Fill(*one.pool, kChunks, 0x11);
    EXPECT_THAT(BytesIn(*two.pool, kChunks), Each(0));
    Fill(*two.pool, kChunks, 0x22);
    EXPECT_THAT(BytesIn(*one.pool, kChunks), Each(0));
  }
  EXPECT_EQ(cuda_.mapped_chunks(), kChunks) << "each once, by the owner";
}

TEST_F(PoolLendingTest, ADomainHasItsChunksAgainUncleared) {
  StartOwner();
  const Executor one = Start(1);
  const Executor successor = Start(1);
  const Executor two = Start(2);
  Fill(*one.pool, 2, 0x11);
  Fill(*two.pool, 2, 0x22);
  EXPECT_THAT(BytesIn(*successor.pool, 2), Each(0x11));
  EXPECT_THAT(BytesIn(*two.pool, 2), Each(0x22));
  // What nobody has used comes before another's chunks.
  EXPECT_THAT(BytesIn(*two.pool, 4), UnorderedElementsAre(0x22, 0x22, 0, 0));
  EXPECT_EQ(cuda_.mapped_chunks(), 0u);
  EXPECT_EQ(cuda_.live_streams(), 0u) << "nothing was cleared";
}

TEST_F(PoolLendingTest, WithoutDomainsNothingIsCleared) {
  StartOwner();
  const Executor one = Start();
  const Executor spare = Start();
  Fill(*one.pool, kChunks, 0x33);
  EXPECT_THAT(BytesIn(*spare.pool, kChunks), Each(0x33));
  EXPECT_EQ(cuda_.mapped_chunks(), 0u);
}

TEST_F(PoolLendingTest, WhatCannotBeClearedIsNotTaken) {
  StartOwner();
  const Executor one = Start(1);
  const Executor two = Start(2);
  Fill(*one.pool, kChunks, 0x11);
  cuda_.LimitMappings(2);
  const absl::StatusOr<Chunks> refused = two.pool->Take(3);
  EXPECT_FALSE(refused.ok());
  EXPECT_FALSE(absl::IsResourceExhausted(refused.status())) << refused.status();
  EXPECT_EQ(two.pool->free_chunks(), kChunks);
  cuda_.LimitMappings(100);
  EXPECT_THAT(BytesIn(*one.pool, kChunks), Each(0x11)) << "not even in part";
  EXPECT_THAT(BytesIn(*two.pool, kChunks), Each(0));
}

// Whatever the dead executor has enqueued may write until then.
TEST_F(PoolLendingTest, ChunksAreFreeOnceTheirProcessHasEnded) {
  StartOwner();
  const Executor successor = Start(2);
  UniqueFd connection = Dial();
  AskRaw(connection, {.what = PoolAsk::kOpen});
  const PoolRequest take{.what = PoolAsk::kTake, .count = 4, .domain = 1, .needed = 4};
  PoolRequest back{.what = PoolAsk::kReturn, .count = 1};
  back.numbers[0] = AskRaw(connection, take).numbers[0];
  connection.Reset();
  const UniqueFd next = Dial();
  EXPECT_EQ(AskRaw(next, back).error, EINVAL) << "whatever its number at the owner";
  EXPECT_TRUE(absl::IsResourceExhausted(successor.pool->Take(3).status()));
  EXPECT_EQ(successor.pool->free_chunks(), 2u);
  EndProcess(0);
  const absl::StatusOr<Chunks> all = successor.pool->Take(kChunks);
  ASSERT_TRUE(all.ok()) << all.status();
  successor.pool->Return(*all);
}

TEST_F(PoolLendingTest, TheEndOfAProcessIsSeenBeforeThatOfItsConnection) {
  StartOwner();
  const Executor successor = Start(2);
  const UniqueFd connection = Dial();
  const PoolRequest take{.what = PoolAsk::kTake, .count = 4, .domain = 1, .needed = 4};
  ASSERT_EQ(AskRaw(connection, take).error, 0);
  EndProcess(0);
  const absl::StatusOr<Chunks> all = successor.pool->Take(kChunks);
  ASSERT_TRUE(all.ok()) << all.status();
  successor.pool->Return(*all);
}

TEST_F(PoolLendingTest, AReturnOfAnothersChunkIsRefused) {
  StartOwner();
  const Executor one = Start(1);
  const Chunks chunks = *one.pool->Take(2);
  const UniqueFd stranger = Dial();
  PoolRequest request{.what = PoolAsk::kReturn, .count = 1};
  request.numbers[0] = *one.pool->NumberOf(chunks[0]);
  EXPECT_EQ(AskRaw(stranger, request).error, EINVAL) << "of one that has taken nothing";
  PoolReply own = AskRaw(stranger, {.what = PoolAsk::kTake, .count = 1, .domain = 2, .needed = 1});
  request.count = 2;
  request.numbers[1] = own.numbers[0];
  const PoolReply refused = AskRaw(stranger, request);
  EXPECT_EQ(refused.error, EINVAL);
  EXPECT_EQ(refused.free_chunks, kChunks - 3) << "its own is not returned either";
  request.numbers[0] = own.numbers[0];
  EXPECT_EQ(AskRaw(stranger, request).error, EINVAL) << "twice the same";
  request.count = 1;
  EXPECT_EQ(AskRaw(stranger, request).free_chunks, kChunks - 2);
  EXPECT_EQ(AskRaw(stranger, request).error, EINVAL) << "no longer its own";
  one.pool->Return(chunks);
  EXPECT_EQ(one.pool->free_chunks(), kChunks);
}

TEST_F(PoolLendingTest, RequestsThatMakeNoSenseAreRefused) {
  StartOwner();
  const UniqueFd connection = Dial();
  const PoolRequest take{.what = PoolAsk::kTake, .count = 1, .needed = 1};
  EXPECT_EQ(AskRaw(connection, take).error, EINVAL) << "before the pool is open";
  ASSERT_EQ(AskRaw(connection, {.what = PoolAsk::kOpen}).free_chunks, kChunks);
  for (const PoolAsk what : {PoolAsk::kTake, PoolAsk::kReturn}) {
    for (const std::uint32_t count : {0u, kMaxTaken + 1, ~0u}) {
      EXPECT_EQ(AskRaw(connection, {.what = what, .count = count, .needed = ~0u}).error, EINVAL);
    }
  }
  EXPECT_EQ(AskRaw(connection, {.what = PoolAsk::kTake, .count = 2, .needed = 1}).error, EINVAL);
  EXPECT_EQ(AskRaw(connection, {.what = PoolAsk::kTake, .count = 1, .needed = ~0ull}).error,
            ENOSPC);
  PoolRequest far{.what = PoolAsk::kReturn, .count = 1};
  far.numbers[0] = ~0u;
  EXPECT_EQ(AskRaw(connection, far).error, EINVAL);
  EXPECT_EQ(AskRaw(connection, take).free_chunks, kChunks - 1);
}

TEST_F(PoolLendingTest, ManyChunksComeInPieces) {
  constexpr std::size_t kMany = 2 * kMaxTaken + 5;
  StartOwner(kMany * kChunk);
  const Executor one = Start(1);
  EXPECT_TRUE(absl::IsResourceExhausted(one.pool->Take(kMany + 1).status()));
  EXPECT_EQ(one.pool->free_chunks(), kMany);
  Chunks all = *one.pool->Take(kMany);
  EXPECT_EQ(one.pool->free_chunks(), 0u);
  std::ranges::sort(all);
  EXPECT_EQ(std::ranges::unique(all).begin(), all.end());
  one.pool->Return(all);
  EXPECT_EQ(one.pool->free_chunks(), kMany);
}

}  // namespace
}  // namespace torpor::executor
