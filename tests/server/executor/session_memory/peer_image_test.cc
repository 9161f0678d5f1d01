// An image that is resident on one GPU and reachable from another, and the executors' talk about
// it.
#include "server/executor/session_memory/peer_client.h"
#include "tests/server/executor/image/in_order.h"
#include "tests/server/executor/session_memory/peer_fixture.h"

namespace torpor::executor {
namespace {

memory::ExtentSet Live(std::initializer_list<memory::Extent> extents) {
  memory::ExtentSet set;
  for (const memory::Extent& extent : extents) set.Add(extent);
  return set;
}

class PeerImageTest : public PeerFixture {
 protected:
  PeerImageTest() : PeerFixture(8, NewImageFiles(kRange)), stream_(*device_->CreateStream()) {
    MakePeer(NewImageFiles(kRange));
  }

  absl::Status MapPeer(const memory::ExtentSet& live) {
    PeerClient owner(socket_, identity_);
    return peer_->MapPeer(live, owner);
  }

  const CUstream stream_;
};

TEST_F(PeerImageTest, IsTheSameMemory) {
  const auto live = Live({{0, 3 * kChunk}, {5 * kChunk + 512, 5 * kChunk + 1024}});
  ASSERT_TRUE(owner().SwapIn(InOrder(live.extents())).ok());
  ASSERT_TRUE(MapPeer(live).ok());
  OnOwner(2 * kChunk)[5] = 42;
  EXPECT_EQ(OnPeer(2 * kChunk)[5], 42);
  OnPeer(5 * kChunk)[600] = 43;
  EXPECT_EQ(OnOwner(5 * kChunk)[600], 43);
  EXPECT_TRUE(peer_->Contains(kPeerBase + 5 * kChunk + 512, 512));
  EXPECT_FALSE(peer_->Contains(kPeerBase + 5 * kChunk, 1024));
  EXPECT_EQ(pool_->free_chunks(), 4u) << "the peer takes none of its own";
}

TEST_F(PeerImageTest, FollowsTheOwnerAsItGrowsAndShrinks) {
  ASSERT_TRUE(owner().SwapIn(InOrder({{0, kChunk}})).ok());
  ASSERT_TRUE(MapPeer(Live({{0, kChunk}})).ok());
  ASSERT_TRUE(owner().Grow({kChunk, 2 * kChunk}, stream_).ok());
  ASSERT_TRUE(MapPeer(Live({{0, 2 * kChunk}})).ok());
  OnPeer(kChunk)[0] = 9;
  EXPECT_EQ(OnOwner(kChunk)[0], 9);
  ASSERT_TRUE(MapPeer(Live({{kChunk, 2 * kChunk}})).ok());
  EXPECT_FALSE(peer_->Contains(kPeerBase, 1));
  EXPECT_TRUE(peer_->Contains(kPeerBase + kChunk, 1));
  ASSERT_TRUE(MapPeer({}).ok());
  EXPECT_EQ(cuda_.mapped_chunks(), 2u) << "the owner's";
}

TEST_F(PeerImageTest, WhatTheOwnerHasNotYetComesLater) {
  ASSERT_TRUE(owner().SwapIn(InOrder({{0, kChunk}})).ok());
  ASSERT_TRUE(MapPeer(Live({{0, 2 * kChunk}})).ok());
  EXPECT_FALSE(peer_->Contains(kPeerBase + kChunk, 1));
}

TEST_F(PeerImageTest, WhatPeersMayHaveChangedIsWrittenBack) {
  ASSERT_TRUE(owner().SwapIn(InOrder({{0, 1000}})).ok());
  EXPECT_EQ(owner().WriteBack(stream_)->bytes.total(), 0u);
  ASSERT_TRUE(MapPeer(Live({{0, 1000}})).ok());
  for (std::uint8_t change = 1; change < 3; ++change) {
    *reinterpret_cast<std::uint8_t*>(kOwnerBase + 5) = change;
    EXPECT_EQ(owner().WriteBack(stream_)->bytes.total(), 1000u) << "at any time";
  }
  EXPECT_EQ(owner().WriteBack(stream_)->bytes.total(), 0u);
}

TEST_F(PeerImageTest, IsEitherResidentOrAPeers) {
  ASSERT_TRUE(peer_->SwapIn(InOrder({{0, kChunk}})).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(MapPeer(Live({{0, kChunk}}))));
  ASSERT_TRUE(peer_->Drop().ok());
  ASSERT_TRUE(owner().SwapIn(InOrder({{0, kChunk}})).ok());
  ASSERT_TRUE(MapPeer(Live({{0, kChunk}})).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(peer_->SwapIn(InOrder({{0, kChunk}})).status()));
}

TEST_F(PeerImageTest, NobodyGetsMemoryWithoutThePeerKey) {
  ASSERT_TRUE(owner().SwapIn(InOrder({{0, kChunk}})).ok());
  identity_.peer_key.fill(4);
  EXPECT_FALSE(MapPeer(Live({{0, kChunk}})).ok());
  EXPECT_EQ(cuda_.mapped_chunks(), 1u);
}

TEST_F(PeerImageTest, WithoutItsOwnerThereIsNoMemory) {
  server_.reset();
  EXPECT_FALSE(MapPeer(Live({{0, kChunk}})).ok());
}

TEST_F(PeerImageTest, SessionsOfAFunctionReachEachOthersMemory) {
  SessionIdentity other = identity_;
  other.id = {8};
  other.device_base = 0x5540'0000'0000;
  const auto further = Open(other, NewImageFiles(kRange));
  SessionIdentity stranger = other;
  stranger.id = stranger.first = {9};
  stranger.function = "another";
  stranger.device_base = 0x5560'0000'0000;
  const auto unrelated = Open(stranger, NewImageFiles(kRange));
  ASSERT_TRUE(owner().SwapIn(InOrder({{0, 1000}})).ok());
  EXPECT_EQ(further->Resolve(kOwnerBase, 1000), kOwnerBase);
  EXPECT_EQ(further->Resolve(kOwnerBase, 1001), 0u);
  EXPECT_EQ(unrelated->Resolve(kOwnerBase, 1000), 0u);
  EXPECT_EQ(unrelated->WindowOf({7}), nullptr);
  EXPECT_EQ(further->WindowOf({6}), nullptr);
  EXPECT_EQ(further->WindowOf({7}).get(), &owner_->window());
}

}  // namespace
}  // namespace torpor::executor
