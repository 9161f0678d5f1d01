// An image that comes from another GPU's copy of it.
#include "server/executor/image/peer_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <optional>
#include <vector>

#include "server/executor/session_memory/peer_client.h"
#include "tests/server/executor/image/in_order.h"
#include "tests/server/executor/session_memory/peer_fixture.h"

namespace torpor::executor {
namespace {

using ::testing::ElementsAre;

constexpr std::uint8_t kOnOwner = 7;  // the bytes of the copy, and of the host's image: in life
constexpr std::uint8_t kOnHost = 8;   // they are the same

// Gives what another gives, as often as it is told.
class Limited final : public ChunkOwner {
 public:
  Limited(ChunkOwner& owner, std::size_t answers) : owner_(owner), answers_(answers) {}

  absl::StatusOr<std::map<std::uint64_t, UniqueFd>> Fetch(
      const std::vector<std::uint64_t>& chunks) override {
    asked.push_back(chunks.size());
    if (asked.size() > answers_) return absl::UnavailableError("it has died");
    return owner_.Fetch(chunks);
  }

  std::vector<std::size_t> asked;

 private:
  ChunkOwner& owner_;
  const std::size_t answers_;
};

class PeerSourceTest : public PeerFixture {
 protected:
  PeerSourceTest()
      : PeerFixture(16, FilesOf(kOnOwner)), client_(socket_, identity_, PeerUse::kCopy) {
    ImageFiles files = FilesOf(kOnHost);
    states_.emplace(StatesIn(files.block_states));
    MakePeer(std::move(files));
    EXPECT_TRUE(owner().SwapIn(InOrder({kWhole})).ok());
    owner().BecomeSource();
  }

  static ImageFiles FilesOf(std::uint8_t bytes) {
    ImageFiles files = NewImageFiles(kRange);
    std::memset(files.image.data(), bytes, kWhole.end);
    return files;
  }
  absl::StatusOr<ArrivedBytes> SwapIn(ChunkOwner& source) {
    return peer_->SwapIn(InOrder({kWhole}), {}, &source);
  }
  static std::uint8_t At(Bytes offset) { return *OnPeer(offset); }

  static constexpr memory::Extent kWhole = {kChunk / 2, 8 * kChunk};

  std::optional<memory::BlockStates> states_;
  PeerClient client_;
};

TEST_F(PeerSourceTest, TheImageComesFromTheOwnerWhichStaysAsItIs) {
  const absl::StatusOr<ArrivedBytes> arrived = SwapIn(client_);
  ASSERT_TRUE(arrived.ok()) << arrived.status();
  EXPECT_EQ(arrived->from_peer.total(), kWhole.bytes());
  EXPECT_EQ(arrived->from_host.total(), 0u);
  EXPECT_EQ(At(kWhole.begin), kOnOwner);
  EXPECT_EQ(At(kWhole.end - 1), kOnOwner);
  EXPECT_FALSE(owner().dirty());
  EXPECT_FALSE(peer_->dirty());
  EXPECT_EQ(pool_->free_chunks(), 0u) << "each has its own";
  *OnOwner(kWhole.begin) = 1;
  EXPECT_EQ(At(kWhole.begin), kOnOwner);
}

TEST_F(PeerSourceTest, TheOwnersMemoryIsLetGoOf) {
  ASSERT_TRUE(SwapIn(client_).ok());
  EXPECT_EQ(cuda_.mapped_chunks(), 24u);
  ASSERT_TRUE(peer_->ReleaseSource().ok());
  EXPECT_EQ(cuda_.mapped_chunks(), 16u);
  EXPECT_EQ(At(kWhole.begin), kOnOwner);
  ASSERT_TRUE(peer_->ReleaseSource().ok()) << "there is nothing left to let go of";
  ASSERT_TRUE(peer_->Drop().ok());
  ASSERT_TRUE(SwapIn(client_).ok());
  ASSERT_TRUE(peer_->Drop().ok());
  EXPECT_EQ(cuda_.mapped_chunks(), 8u) << "the owner's";
}

TEST_F(PeerSourceTest, ChunksAreFetchedAsTheyAreNeeded) {
  Limited source(client_, 4);
  ASSERT_TRUE(SwapIn(source).ok());
  EXPECT_THAT(source.asked, ElementsAre(1, 2, 4, 1));
}

TEST_F(PeerSourceTest, WhatTheOwnerNoLongerGivesComesFromTheHost) {
  Limited source(client_, 2);
  const absl::StatusOr<ArrivedBytes> arrived = SwapIn(source);
  ASSERT_TRUE(arrived.ok()) << arrived.status();
  EXPECT_EQ(At(kWhole.begin), kOnOwner);
  EXPECT_EQ(At(3 * kChunk - 1), kOnOwner);
  EXPECT_EQ(At(3 * kChunk), kOnHost);
  EXPECT_EQ(At(kWhole.end - 1), kOnHost);
  EXPECT_EQ(arrived->from_peer.total() + arrived->from_host.total(), kWhole.bytes());
  EXPECT_THAT(source.asked, ElementsAre(1, 2, 4)) << "it is not asked again";
}

TEST_F(PeerSourceTest, AnOwnerThatHasDiedGivesNothing) {
  server_.reset();
  EXPECT_EQ(SwapIn(client_)->from_host.total(), kWhole.bytes());
  EXPECT_EQ(At(kWhole.begin), kOnHost);
}

TEST_F(PeerSourceTest, AnOwnerThatDiffersFromTheHostGivesNothing) {
  owner().MarkDirty();
  EXPECT_EQ(SwapIn(client_)->from_peer.total(), 0u);
  EXPECT_EQ(At(kWhole.begin), kOnHost);
  ASSERT_TRUE(peer_->Drop().ok());
  owner().ForgetChanges();
  EXPECT_EQ(SwapIn(client_)->from_host.total(), 0u);
}

TEST_F(PeerSourceTest, AnImageThatIsNoSourceIsNotCopied) {
  ASSERT_TRUE(owner().Drop().ok());
  ASSERT_TRUE(owner().SwapIn(InOrder({kWhole})).ok());
  EXPECT_EQ(SwapIn(client_)->from_peer.total(), 0u);
}

TEST_F(PeerSourceTest, AnOwnerWithoutAChunkGivesThoseBefore) {
  ASSERT_TRUE(owner().Shrink({7 * kChunk, 8 * kChunk}, {}).ok());
  ASSERT_TRUE(SwapIn(client_).ok());
  EXPECT_EQ(At(7 * kChunk - 1), kOnOwner);
  EXPECT_EQ(At(7 * kChunk), kOnHost);
}

TEST_F(PeerSourceTest, WhatNobodyHasWrittenIsClearedWithoutAskingForIt) {
  states_->Reset({2 * kChunk, 8 * kChunk});
  Limited source(client_, 2);
  EXPECT_EQ(SwapIn(source)->from_peer.total(), 2 * kChunk - kWhole.begin);
  EXPECT_THAT(source.asked, ElementsAre(1, 1));
  EXPECT_EQ(At(2 * kChunk), 0);
}

}  // namespace
}  // namespace torpor::executor
