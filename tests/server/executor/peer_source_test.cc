// An image that comes from another GPU's copy of it.
#include "server/executor/peer_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <optional>
#include <vector>

#include "server/executor/mapped_backing.h"
#include "server/executor/peer_client.h"
#include "server/executor/peer_server.h"
#include "tests/server/executor/fake_cuda.h"
#include "tests/server/executor/fake_image.h"
#include "tests/server/executor/in_order.h"

namespace torpor::executor {
namespace {

using ::testing::ElementsAre;

constexpr std::uint64_t kOwnerBase = 0x5500'0000'0000;  // where the sanitizers allow mappings
constexpr std::uint64_t kBase = 0x5520'0000'0000;
constexpr Bytes kRange = 64 * kMiB;
constexpr Bytes kChunk = FakeCuda::kChunk;
constexpr std::uint8_t kOnOwner = 7;  // the bytes of the copy, and of the host's image: in life
constexpr std::uint8_t kOnHost = 8;   // they are the same

SessionFiles FilesOf(std::uint8_t bytes) {
  SessionFiles files;
  files.window = NewFile(kMiB);
  files.image = NewImageFiles(kRange);
  std::memset(files.image.image.data(), bytes, 8 * kChunk);
  return files;
}

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

// Both GPUs are in one process here, so that the addresses are others than the owner's.
class PeerSourceTest : public testing::Test {
 protected:
  void SetUp() override {
    device_ = *Device::Open(cuda_.driver(), 0);
    pool_ = *PhysicalPool::Create(*device_, 16 * kChunk, kChunk);
    pool_->Return(*pool_->Take(16));  // waits until the pool is full
    identity_.id = identity_.first = {7};
    identity_.function = "one";
    identity_.peer_key.fill(3);
    identity_.device_base = kOwnerBase;
    identity_.device_bytes = kRange;
    identity_.window_bytes = kMiB;
    gpu_memory_.emplace(*device_, *pool_);
    memory_ = *SessionMemory::Open(*device_, *gpu_memory_, hasher_, identity_, FilesOf(kOnOwner),
                                   directory_);
    ImageFiles files = FilesOf(kOnHost).image;
    states_.emplace(StatesIn(files.block_states));
    image_ = std::make_unique<DeviceImage>(*device_,
                                           *MappedBacking::Open(*device_, *pool_, kBase, kRange),
                                           hasher_, kBase, kRange, std::move(files));
    socket_ = testing::TempDir() + "source." + std::to_string(getpid()) + ".sock";
    server_ = *PeerServer::Start(socket_, *device_, directory_);
    client_.emplace(socket_, identity_, PeerUse::kCopy);
    ASSERT_TRUE(owner().SwapIn(InOrder({kWhole})).ok());
    owner().BecomeSource();
  }
  void TearDown() override {
    ASSERT_TRUE(image_->Drop().ok());
    server_.reset();
  }

  DeviceImage& owner() { return memory_->image(); }
  absl::StatusOr<ArrivedBytes> SwapIn(ChunkOwner& source) {
    return image_->SwapIn(InOrder({kWhole}), {}, &source);
  }
  static std::uint8_t* OnOwner(Bytes offset) {
    return reinterpret_cast<std::uint8_t*>(kOwnerBase + offset);
  }
  static std::uint8_t At(Bytes offset) { return *reinterpret_cast<std::uint8_t*>(kBase + offset); }

  static constexpr memory::Extent kWhole = {kChunk / 2, 8 * kChunk};

  FakeCuda cuda_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<PhysicalPool> pool_;
  std::optional<MappedMemory> gpu_memory_;
  HostBlockHasher hasher_;
  MemoryDirectory directory_;
  SessionIdentity identity_;
  std::unique_ptr<SessionMemory> memory_;
  std::unique_ptr<DeviceImage> image_;
  std::optional<memory::BlockStates> states_;
  std::string socket_;
  std::unique_ptr<PeerServer> server_;
  std::optional<PeerClient> client_;
};

TEST_F(PeerSourceTest, TheImageComesFromTheOwnerWhichStaysAsItIs) {
  const absl::StatusOr<ArrivedBytes> arrived = SwapIn(*client_);
  ASSERT_TRUE(arrived.ok()) << arrived.status();
  EXPECT_EQ(arrived->from_peer.total(), kWhole.bytes());
  EXPECT_EQ(arrived->from_host.total(), 0u);
  EXPECT_EQ(At(kWhole.begin), kOnOwner);
  EXPECT_EQ(At(kWhole.end - 1), kOnOwner);
  EXPECT_FALSE(owner().dirty());
  EXPECT_FALSE(image_->dirty());
  EXPECT_EQ(pool_->free_chunks(), 0u) << "each has its own";
  *OnOwner(kWhole.begin) = 1;
  EXPECT_EQ(At(kWhole.begin), kOnOwner);
}

TEST_F(PeerSourceTest, TheOwnersMemoryIsLetGoOf) {
  ASSERT_TRUE(SwapIn(*client_).ok());
  EXPECT_EQ(cuda_.mapped_chunks(), 24u);
  ASSERT_TRUE(image_->ReleaseSource().ok());
  EXPECT_EQ(cuda_.mapped_chunks(), 16u);
  EXPECT_EQ(At(kWhole.begin), kOnOwner);
  ASSERT_TRUE(image_->ReleaseSource().ok()) << "there is nothing left to let go of";
  ASSERT_TRUE(image_->Drop().ok());
  ASSERT_TRUE(SwapIn(*client_).ok());
  ASSERT_TRUE(image_->Drop().ok());
  EXPECT_EQ(cuda_.mapped_chunks(), 8u) << "the owner's";
}

TEST_F(PeerSourceTest, ChunksAreFetchedAsTheyAreNeeded) {
  Limited source(*client_, 4);
  ASSERT_TRUE(SwapIn(source).ok());
  EXPECT_THAT(source.asked, ElementsAre(1, 2, 4, 1));
}

TEST_F(PeerSourceTest, WhatTheOwnerNoLongerGivesComesFromTheHost) {
  Limited source(*client_, 2);
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
  EXPECT_EQ(SwapIn(*client_)->from_host.total(), kWhole.bytes());
  EXPECT_EQ(At(kWhole.begin), kOnHost);
}

TEST_F(PeerSourceTest, AnOwnerThatDiffersFromTheHostGivesNothing) {
  owner().MarkDirty();
  EXPECT_EQ(SwapIn(*client_)->from_peer.total(), 0u);
  EXPECT_EQ(At(kWhole.begin), kOnHost);
  ASSERT_TRUE(image_->Drop().ok());
  owner().ForgetChanges();
  EXPECT_EQ(SwapIn(*client_)->from_host.total(), 0u);
}

TEST_F(PeerSourceTest, AnImageThatIsNoSourceIsNotCopied) {
  ASSERT_TRUE(owner().Drop().ok());
  ASSERT_TRUE(owner().SwapIn(InOrder({kWhole})).ok());
  EXPECT_EQ(SwapIn(*client_)->from_peer.total(), 0u);
}

TEST_F(PeerSourceTest, AnOwnerWithoutAChunkGivesThoseBefore) {
  ASSERT_TRUE(owner().Shrink({7 * kChunk, 8 * kChunk}, {}).ok());
  ASSERT_TRUE(SwapIn(*client_).ok());
  EXPECT_EQ(At(7 * kChunk - 1), kOnOwner);
  EXPECT_EQ(At(7 * kChunk), kOnHost);
}

TEST_F(PeerSourceTest, WhatNobodyHasWrittenIsClearedWithoutAskingForIt) {
  states_->Reset({2 * kChunk, 8 * kChunk});
  Limited source(*client_, 2);
  EXPECT_EQ(SwapIn(source)->from_peer.total(), 2 * kChunk - kWhole.begin);
  EXPECT_THAT(source.asked, ElementsAre(1, 1));
  EXPECT_EQ(At(2 * kChunk), 0);
}

}  // namespace
}  // namespace torpor::executor
