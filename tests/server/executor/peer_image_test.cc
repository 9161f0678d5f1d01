// An image that is resident on one GPU and reachable from another, and the executors' talk about
// it.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <optional>

#include "server/executor/mapped_backing.h"
#include "server/executor/peer_client.h"
#include "server/executor/peer_server.h"
#include "tests/server/executor/fake_cuda.h"
#include "tests/server/executor/fake_image.h"
#include "tests/server/executor/in_order.h"

namespace torpor::executor {
namespace {

constexpr std::uint64_t kOwnerBase = 0x5500'0000'0000;  // where the sanitizers allow mappings
constexpr std::uint64_t kPeerBase = 0x5520'0000'0000;
constexpr Bytes kRange = 64 * kMiB;
constexpr Bytes kChunk = FakeCuda::kChunk;

SessionFiles NewFiles() {
  SessionFiles files;
  files.window = NewFile(kMiB);
  files.image = NewImageFiles(kRange);
  return files;
}

memory::ExtentSet Live(std::initializer_list<memory::Extent> extents) {
  memory::ExtentSet set;
  for (const memory::Extent& extent : extents) set.Add(extent);
  return set;
}

// Both GPUs are in one process here, so that the peer's addresses are others than the owner's.
class PeerImageTest : public testing::Test {
 protected:
  void SetUp() override {
    device_ = *Device::Open(cuda_.driver(), 0);
    pool_ = *PhysicalPool::Create(*device_, 8 * kChunk, kChunk);
    pool_->Return(*pool_->Take(8));  // waits until the pool is full
    identity_.id = identity_.first = {7};
    identity_.function = "one";
    identity_.peer_key.fill(3);
    identity_.device_base = kOwnerBase;
    identity_.device_bytes = kRange;
    identity_.window_bytes = kMiB;
    gpu_memory_.emplace(*device_, *pool_);
    owner_ =
        *SessionMemory::Open(*device_, *gpu_memory_, hasher_, identity_, NewFiles(), directory_);
    peer_ = std::make_unique<DeviceImage>(*device_,
                                          *MappedBacking::Open(*device_, *pool_, kPeerBase, kRange),
                                          hasher_, kPeerBase, kRange, NewImageFiles(kRange));
    stream_ = *device_->CreateStream();
    socket_ = testing::TempDir() + "peers." + std::to_string(getpid()) + ".sock";
    server_ = *PeerServer::Start(socket_, *device_, directory_);
  }
  void TearDown() override {
    ASSERT_TRUE(peer_->Drop().ok());
    server_.reset();
  }

  absl::Status MapPeer(const memory::ExtentSet& live) {
    PeerClient owner(socket_, identity_, PeerUse::kShare);
    return peer_->MapPeer(live, owner);
  }
  static std::uint8_t* OnOwner(Bytes offset) {
    return reinterpret_cast<std::uint8_t*>(kOwnerBase + offset);
  }
  static std::uint8_t* OnPeer(Bytes offset) {
    return reinterpret_cast<std::uint8_t*>(kPeerBase + offset);
  }

  FakeCuda cuda_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<PhysicalPool> pool_;
  std::optional<MappedMemory> gpu_memory_;
  HostBlockHasher hasher_;
  MemoryDirectory directory_;
  SessionIdentity identity_;
  std::unique_ptr<SessionMemory> owner_;
  std::unique_ptr<DeviceImage> peer_;
  CUstream stream_ = nullptr;
  std::string socket_;
  std::unique_ptr<PeerServer> server_;
};

TEST_F(PeerImageTest, IsTheSameMemory) {
  const auto live = Live({{0, 3 * kChunk}, {5 * kChunk + 512, 5 * kChunk + 1024}});
  ASSERT_TRUE(owner_->image().SwapIn(InOrder(live.extents())).ok());
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
  ASSERT_TRUE(owner_->image().SwapIn(InOrder({{0, kChunk}})).ok());
  ASSERT_TRUE(MapPeer(Live({{0, kChunk}})).ok());
  ASSERT_TRUE(owner_->image().Grow({kChunk, 2 * kChunk}, stream_).ok());
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
  ASSERT_TRUE(owner_->image().SwapIn(InOrder({{0, kChunk}})).ok());
  ASSERT_TRUE(MapPeer(Live({{0, 2 * kChunk}})).ok());
  EXPECT_FALSE(peer_->Contains(kPeerBase + kChunk, 1));
}

TEST_F(PeerImageTest, WhatPeersMayHaveChangedIsWrittenBack) {
  ASSERT_TRUE(owner_->image().SwapIn(InOrder({{0, 1000}})).ok());
  EXPECT_EQ(owner_->image().WriteBack(stream_)->bytes.total(), 0u);
  ASSERT_TRUE(MapPeer(Live({{0, 1000}})).ok());
  for (std::uint8_t change = 1; change < 3; ++change) {
    *reinterpret_cast<std::uint8_t*>(kOwnerBase + 5) = change;
    EXPECT_EQ(owner_->image().WriteBack(stream_)->bytes.total(), 1000u) << "at any time";
  }
  EXPECT_EQ(owner_->image().WriteBack(stream_)->bytes.total(), 0u);
}

TEST_F(PeerImageTest, IsEitherResidentOrAPeers) {
  ASSERT_TRUE(peer_->SwapIn(InOrder({{0, kChunk}})).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(MapPeer(Live({{0, kChunk}}))));
  ASSERT_TRUE(peer_->Drop().ok());
  ASSERT_TRUE(owner_->image().SwapIn(InOrder({{0, kChunk}})).ok());
  ASSERT_TRUE(MapPeer(Live({{0, kChunk}})).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(peer_->SwapIn(InOrder({{0, kChunk}})).status()));
}

TEST_F(PeerImageTest, NobodyGetsMemoryWithoutThePeerKey) {
  ASSERT_TRUE(owner_->image().SwapIn(InOrder({{0, kChunk}})).ok());
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
  const auto further =
      *SessionMemory::Open(*device_, *gpu_memory_, hasher_, other, NewFiles(), directory_);
  SessionIdentity stranger = other;
  stranger.id = stranger.first = {9};
  stranger.function = "another";
  stranger.device_base = 0x5560'0000'0000;
  const auto unrelated =
      *SessionMemory::Open(*device_, *gpu_memory_, hasher_, stranger, NewFiles(), directory_);
  ASSERT_TRUE(owner_->image().SwapIn(InOrder({{0, 1000}})).ok());
  EXPECT_EQ(further->Resolve(kOwnerBase, 1000), kOwnerBase);
  EXPECT_EQ(further->Resolve(kOwnerBase, 1001), 0u);
  EXPECT_EQ(unrelated->Resolve(kOwnerBase, 1000), 0u);
  EXPECT_EQ(unrelated->WindowOf({7}), nullptr);
  EXPECT_EQ(further->WindowOf({6}), nullptr);
  EXPECT_EQ(further->WindowOf({7}).get(), &owner_->window());
}

}  // namespace
}  // namespace torpor::executor
