#include "server/executor/image/pool_owner.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "server/executor/gpu/device_mapping.h"
#include "server/executor/gpu/packet_socket.h"
#include "server/executor/image/physical_pool.h"
#include "server/executor/image/pool_client.h"
#include "tests/server/executor/image/pool_owner_fixture.h"

namespace torpor::executor {
namespace {

using PoolOwnerTest = PoolOwnerFixture;

TEST_F(PoolOwnerTest, ExecutorsHaveTheSameMemory) {
  StartOwner();
  const auto first = Client();
  const auto second = Client();
  ASSERT_TRUE(first->Try(*device_).ok());
  const auto pool = *PhysicalPool::Import(*device_, *first);
  const auto spare = *PhysicalPool::Import(*device_, *second);
  EXPECT_EQ(pool->pool_bytes(), kChunks * kChunk);
  EXPECT_EQ(spare->pool_bytes(), kChunks * kChunk);
  const auto of_pool = *pool->Take(kChunks);
  for (std::size_t i = 0; i < kChunks; ++i) {
    Map(of_pool[i])[100] = static_cast<std::uint8_t>(*pool->NumberOf(of_pool[i]) + 1);
  }
  pool->Return(of_pool);
  const auto of_spare = *spare->Take(kChunks);
  for (const CUmemGenericAllocationHandle chunk : of_spare) {
    EXPECT_EQ(Map(chunk)[100], *spare->NumberOf(chunk) + 1);
  }
  UnmapAll();
  spare->Return(of_spare);
}

TEST_F(PoolOwnerTest, AnExecutorsChunksAreExportedByTheirOwner) {
  StartOwner();
  const auto client = Client();
  const auto pool = *PhysicalPool::Import(*device_, *client);
  const auto chunks = *pool->Take(1);
  Map(chunks.front())[7] = 77;
  const UniqueFd descriptor = *pool->Export(*pool->NumberOf(chunks.front()));
  const CUmemGenericAllocationHandle other = *ImportMemory(*device_, descriptor);
  EXPECT_EQ(Map(other)[7], 77);
  UnmapAll();
  device_->driver().MemRelease(other);
  pool->Return(chunks);
}

TEST_F(PoolOwnerTest, TheMemoryOutlivesItsExecutors) {
  StartOwner();
  PoolDescription before;
  {
    const auto client = Client();
    before = *client->Open();
    const auto pool = *PhysicalPool::Import(*device_, *client);
    const auto chunks = *pool->Take(1);
    Map(chunks.front())[0] = 1;
    UnmapAll();
    pool->Return(chunks);
  }
  const auto client = Client();
  EXPECT_EQ(*client->Open(), before);
}

TEST_F(PoolOwnerTest, WhereNothingCanBeExportedTheMemoryIsLeftToTheExecutor) {
  cuda_.RefuseExports();
  StartOwner();
  const auto client = Client();
  EXPECT_FALSE(client->Try(*device_).ok());
  const auto own = PhysicalPool::Create(*device_, kChunks * kChunk, kChunk);
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_EQ((*own)->pool_bytes(), kChunks * kChunk) << "the owner has kept nothing";
  EXPECT_FALSE((*own)->can_export());
}

// A spare executor will take as much for its context and libraries as the first one has.
TEST_F(PoolOwnerTest, ASpareExecutorHasRoomBesideThePool) {
  cuda_.LimitChunks(100);
  StartOwner(/*pool_bytes=*/0);
  const auto client = Client();
  cuda_.LimitChunks(90);
  EXPECT_EQ(client->Open()->chunks, 90 - 10 - 2);
}

TEST_F(PoolOwnerTest, RequestsForWhatIsNotThereAreRefused) {
  StartOwner();
  const auto client = Client();
  EXPECT_TRUE(absl::IsInvalidArgument(client->Fetch(0, 1).status())) << "before the pool is open";
  ASSERT_TRUE(client->Open().ok());
  EXPECT_TRUE(client->Fetch(kChunks - 1, 1).ok());
  EXPECT_FALSE(client->Fetch(kChunks, 1).ok());
  EXPECT_FALSE(client->Fetch(kChunks - 1, 2).ok());
  EXPECT_FALSE(client->Fetch(~std::uint64_t{0}, 1).ok());
  EXPECT_FALSE(client->Fetch(0, 0).ok());
  EXPECT_FALSE(client->Fetch(0, kMaxDescriptors + 1).ok());
}

TEST_F(PoolOwnerTest, GarbageCostsItsConnectionAlone) {
  StartOwner();
  const auto client = Client();
  ASSERT_TRUE(client->Open().ok());
  for (const std::size_t bytes :
       {std::size_t{1}, sizeof(PoolRequest) - 1, sizeof(PoolRequest) + 1, std::size_t{4096}}) {
    const UniqueFd stranger = Dial();
    const std::string garbage(bytes, 'x');
    ASSERT_EQ(send(stranger.get(), garbage.data(), bytes, MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes));
    char answer = 0;
    EXPECT_EQ(recv(stranger.get(), &answer, 1, 0), 0) << "closed";
  }
  PoolRequest unknown;
  unknown.what = static_cast<PoolAsk>(99);
  PoolReply reply;
  const UniqueFd stranger = Dial();
  ASSERT_TRUE(Ask(stranger, "the owner", std::as_bytes(std::span(&unknown, 1)),
                  std::as_writable_bytes(std::span(&reply, 1)))
                  .ok());
  EXPECT_EQ(reply.error, EINVAL);
  EXPECT_TRUE(client->Fetch(0, 1).ok());
}

TEST_F(PoolOwnerTest, WhatIsFetchedComesInPieces) {
  StartOwner((kMaxDescriptors + 5) * kChunk);
  const auto client = Client();
  const auto pool = *PhysicalPool::Import(*device_, *client);
  EXPECT_EQ(pool->chunks(), kMaxDescriptors + 5);
}

}  // namespace
}  // namespace torpor::executor
