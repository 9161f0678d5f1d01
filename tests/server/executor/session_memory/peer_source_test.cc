// An image that comes from another GPU's copy of it, and the chunks that stay mapped for the next.
#include "server/executor/image/peer_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "server/executor/session_memory/peer_image_copy.h"
#include "server/executor/session_memory/peer_pools.h"
#include "tests/server/executor/image/in_order.h"
#include "tests/server/executor/session_memory/peer_fixture.h"

namespace torpor::executor {
namespace {

using ::testing::ElementsAre;

constexpr std::uint8_t kOnOwner = 7;  // the bytes of the copy, and of the host's image: in life
constexpr std::uint8_t kOnHost = 8;   // they are the same

// Gives what another gives, as often as it is told, and notes how many chunks were asked for.
class Limited final : public PeerCopy {
 public:
  Limited(std::unique_ptr<PeerCopy> copy, std::size_t answers, std::vector<std::size_t>& asked)
      : copy_(std::move(copy)), answers_(answers), asked_(asked) {}

  absl::StatusOr<std::map<std::uint64_t, CUdeviceptr>> Reach(
      const std::vector<std::uint64_t>& chunks) override {
    asked_.push_back(chunks.size());
    if (asked_.size() > answers_) return absl::UnavailableError("it has died");
    return copy_->Reach(chunks);
  }

 private:
  const std::unique_ptr<PeerCopy> copy_;
  const std::size_t answers_;
  std::vector<std::size_t>& asked_;
};

class PeerSourceTest : public PeerFixture {
 protected:
  PeerSourceTest() : PeerFixture(16, FilesOf(kOnOwner)), pools_(*PeerPools::Start(*device_)) {
    ImageFiles files = FilesOf(kOnHost);
    records_ = RecordsOf(files);
    MakePeer(std::move(files));
    EXPECT_TRUE(owner().SwapIn(InOrder({kWhole})).ok());
    owner().BecomeSource();
  }

  static ImageFiles FilesOf(std::uint8_t bytes) {
    ImageFiles files = NewImageFiles(kRange);
    std::memset(files.image.data(), bytes, kWhole.end);
    return files;
  }
  std::unique_ptr<PeerCopy> Copy() {
    return std::make_unique<PeerImageCopy>(*pools_, socket_, identity_);
  }
  absl::StatusOr<ArrivedBytes> SwapIn(std::unique_ptr<PeerCopy> source) {
    return peer_->SwapIn(InOrder({kWhole}), {}, std::move(source));
  }
  absl::StatusOr<ArrivedBytes> SwapIn() { return SwapIn(Copy()); }
  // From a copy that gives so many answers.
  absl::StatusOr<ArrivedBytes> SwapInOf(std::size_t answers) {
    return SwapIn(std::make_unique<Limited>(Copy(), answers, asked_));
  }
  // The owner's executor ends, and its end is noticed.
  void EndOwner() {
    server_.reset();
    while (pools_->count() > 0) std::this_thread::yield();
  }
  static std::uint8_t At(Bytes offset) { return *OnPeer(offset); }

  static constexpr memory::Extent kWhole = {kChunk / 2, 8 * kChunk};

  std::span<memory::BlockRecord> records_;  // of the peer's image
  std::unique_ptr<PeerPools> pools_;
  std::vector<std::size_t> asked_;
};

TEST_F(PeerSourceTest, TheImageComesFromTheOwnerWhichStaysAsItIs) {
  const absl::StatusOr<ArrivedBytes> arrived = SwapIn();
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

TEST_F(PeerSourceTest, TheOwnersChunksAreImportedOnce) {
  ASSERT_TRUE(SwapIn().ok());
  EXPECT_EQ(cuda_.mapped_chunks(), 24u) << "the owner's, the peer's, and the owner's here";
  ASSERT_TRUE(peer_->ReleaseSource().ok());
  ASSERT_TRUE(peer_->ReleaseSource().ok()) << "there is nothing left to let go of";
  EXPECT_EQ(cuda_.mapped_chunks(), 24u);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(peer_->Drop().ok());
    EXPECT_EQ(SwapIn()->from_peer.total(), kWhole.bytes());
    EXPECT_EQ(At(kWhole.begin), kOnOwner);
    EXPECT_EQ(At(kWhole.end - 1), kOnOwner);
  }
  EXPECT_EQ(cuda_.chunks_imported(), 8u);
  EXPECT_EQ(pools_->count(), 1u);
}

TEST_F(PeerSourceTest, AnImageThatHasMovedInThePoolIsFoundAgain) {
  ASSERT_TRUE(SwapIn().ok());
  ASSERT_TRUE(peer_->Drop().ok());
  // Other chunks serve the image now, in another order.
  ASSERT_TRUE(owner().Drop().ok());
  const auto others = *pool_->Take(5);
  ASSERT_TRUE(owner().SwapIn(InOrder({kWhole})).ok());
  pool_->Return(others);
  owner().BecomeSource();
  for (Bytes at = kWhole.begin; at < kWhole.end; at += kChunk) {
    *OnOwner(at) = static_cast<std::uint8_t>(at / kChunk + 100);
  }
  ASSERT_EQ(SwapIn()->from_peer.total(), kWhole.bytes());
  for (Bytes at = kWhole.begin; at < kWhole.end; at += kChunk) EXPECT_EQ(At(at), at / kChunk + 100);
  EXPECT_EQ(cuda_.chunks_imported(), 13u) << "of which 3 serve again";
}

TEST_F(PeerSourceTest, TheMemoryOfAnOwnerThatHasEndedIsLetGoOf) {
  ASSERT_TRUE(SwapIn().ok());
  ASSERT_TRUE(peer_->ReleaseSource().ok());
  EndOwner();
  pools_.reset();
  EXPECT_EQ(cuda_.mapped_chunks(), 16u);
}

TEST_F(PeerSourceTest, CopiesUnderWayKeepTheMemoryOfAnOwnerThatHasEnded) {
  cuda_.HoldStreams();
  ASSERT_TRUE(SwapIn().ok());
  EndOwner();
  EXPECT_EQ(cuda_.mapped_chunks(), 24u);
  cuda_.Release();
  EXPECT_EQ(At(kWhole.end - 1), kOnOwner);
  ASSERT_TRUE(peer_->ReleaseSource().ok());
  EXPECT_EQ(cuda_.mapped_chunks(), 16u);
}

TEST_F(PeerSourceTest, AnIsolatedExecutorMapsTheOwnersChunksOnlyWhileCopying) {
  pools_->UnmapAfterUse();
  cuda_.HoldStreams();
  ASSERT_TRUE(SwapIn().ok());
  EXPECT_EQ(cuda_.mapped_chunks(), 24u);
  ASSERT_TRUE(peer_->ReleaseSource().ok());
  EXPECT_EQ(cuda_.mapped_chunks(), 16u);
  EXPECT_EQ(At(kWhole.end - 1), kOnOwner) << "the copies had ended";
  ASSERT_TRUE(peer_->Drop().ok());
  EXPECT_EQ(SwapIn()->from_peer.total(), kWhole.bytes());
  EXPECT_EQ(cuda_.chunks_imported(), 16u);
  EXPECT_EQ(pools_->count(), 1u);
}

TEST_F(PeerSourceTest, WhatWasMappedBeforeTheIsolationGoesToo) {
  ASSERT_TRUE(SwapIn().ok());
  ASSERT_TRUE(peer_->ReleaseSource().ok());
  EXPECT_EQ(cuda_.mapped_chunks(), 24u);
  pools_->UnmapAfterUse();
  EXPECT_EQ(cuda_.mapped_chunks(), 16u);
}

TEST_F(PeerSourceTest, AFailedSwapInUsesNoChunkOfTheOwner) {
  pools_->UnmapAfterUse();
  cuda_.RefuseDeviceCopies(true);
  EXPECT_FALSE(SwapIn().ok());
  EXPECT_EQ(cuda_.mapped_chunks(), 8u) << "the owner's";
  cuda_.RefuseDeviceCopies(false);
  EXPECT_EQ(SwapIn()->from_peer.total(), kWhole.bytes());
}

TEST_F(PeerSourceTest, AnOwnersSuccessorHasAnotherPool) {
  ASSERT_TRUE(SwapIn().ok());
  ASSERT_TRUE(peer_->Drop().ok());
  server_.reset();
  server_ = *PeerServer::Start(socket_, *device_, *pool_, directory_);
  EXPECT_EQ(SwapIn()->from_peer.total(), kWhole.bytes());
  EXPECT_EQ(cuda_.chunks_imported(), 16u) << "though its socket has the same name";
  EXPECT_EQ(pools_->count(), 1u);
}

TEST_F(PeerSourceTest, MemoryThatCannotBeSharedComesFromTheHost) {
  cuda_.RefuseExports();
  EXPECT_EQ(SwapIn()->from_host.total(), kWhole.bytes());
  EXPECT_EQ(At(kWhole.begin), kOnHost);
}

TEST_F(PeerSourceTest, ChunksAreFetchedAsTheyAreNeeded) {
  ASSERT_TRUE(SwapInOf(4).ok());
  EXPECT_THAT(asked_, ElementsAre(1, 2, 4, 1));
}

TEST_F(PeerSourceTest, WhatTheOwnerNoLongerGivesComesFromTheHost) {
  const absl::StatusOr<ArrivedBytes> arrived = SwapInOf(2);
  ASSERT_TRUE(arrived.ok()) << arrived.status();
  EXPECT_EQ(At(kWhole.begin), kOnOwner);
  EXPECT_EQ(At(3 * kChunk - 1), kOnOwner);
  EXPECT_EQ(At(3 * kChunk), kOnHost);
  EXPECT_EQ(At(kWhole.end - 1), kOnHost);
  EXPECT_EQ(arrived->from_peer.total() + arrived->from_host.total(), kWhole.bytes());
  EXPECT_THAT(asked_, ElementsAre(1, 2, 4)) << "it is not asked again";
}

TEST_F(PeerSourceTest, AnOwnerThatHasDiedGivesNothing) {
  server_.reset();
  EXPECT_EQ(SwapIn()->from_host.total(), kWhole.bytes());
  EXPECT_EQ(At(kWhole.begin), kOnHost);
}

TEST_F(PeerSourceTest, AnOwnerThatDiffersFromTheHostGivesNothing) {
  owner().MarkDirty();
  EXPECT_EQ(SwapIn()->from_peer.total(), 0u);
  EXPECT_EQ(At(kWhole.begin), kOnHost);
  ASSERT_TRUE(peer_->Drop().ok());
  owner().ForgetChanges();
  EXPECT_EQ(SwapIn()->from_host.total(), 0u);
}

TEST_F(PeerSourceTest, AnImageThatIsNoSourceIsNotCopied) {
  ASSERT_TRUE(owner().Drop().ok());
  ASSERT_TRUE(owner().SwapIn(InOrder({kWhole})).ok());
  EXPECT_EQ(SwapIn()->from_peer.total(), 0u);
}

TEST_F(PeerSourceTest, AnOwnerWithoutAChunkGivesTheGroupsBefore) {
  ASSERT_TRUE(owner().Shrink({7 * kChunk, 8 * kChunk}, {}).ok());
  ASSERT_TRUE(SwapIn().ok());
  // The last group is of three chunks.
  EXPECT_EQ(At(5 * kChunk - 1), kOnOwner);
  EXPECT_EQ(At(5 * kChunk), kOnHost);
  EXPECT_EQ(At(7 * kChunk), kOnHost);
}

TEST_F(PeerSourceTest, WhatNobodyHasWrittenIsClearedWithoutAskingForIt) {
  memory::ResetBlocks(records_, {2 * kChunk, 8 * kChunk}, wire::kImageBlockBytes);
  EXPECT_EQ(SwapInOf(2)->from_peer.total(), 2 * kChunk - kWhole.begin);
  EXPECT_THAT(asked_, ElementsAre(1, 1));
  EXPECT_EQ(At(2 * kChunk), 0);
}

}  // namespace
}  // namespace torpor::executor
