#include "server/controller/memory/device_allocations.h"

#include <unistd.h>

#include "memory/block_states.h"
#include "server/controller/model/cuda_errors.h"
#include "server/controller/model/extents.h"
#include "tests/server/controller/node_world.h"

namespace torpor::server {
namespace {

class DeviceAllocationsTest : public NodeWorld {
 protected:
  // The client's answer, if it has come.
  std::optional<wire::MemoryReply> Reply() { return LinkOf(session_).Take<wire::MemoryReply>(); }
  // An allocation of one chunk that needs no answer of an executor.
  std::uint64_t Malloc() {
    allocations_.Malloc(session_, {1, kChunk});
    allocations_.OnGrowthAnswered(events_.Of<scheduler::GrowthWanted>().back().growth, true);
    const auto reply = Reply();
    return reply ? reply->address : 0;
  }

  PeerAccess peers_{tables_.executors, tables_.sessions};
  MemoryLimits limits_{tables_.sessions, tables_.executors, kChunk};
  FreedPages freed_{tables_.sessions, tables_.executors, loop_};
  DeviceAllocations allocations_{
      tables_.instances, tables_.sessions, tables_.executors, peers_, limits_, host_.segments,
      host_.room,        freed_,           events_,           loop_};
  const SessionPtr session_ = AddSession("a");
};

TEST_F(DeviceAllocationsTest, ANewChunkWaitsForTheScheduler) {
  allocations_.Malloc(session_, {1, 100});
  const auto wanted = events_.Of<scheduler::GrowthWanted>();
  ASSERT_EQ(wanted.size(), 1u);
  EXPECT_EQ(wanted[0].bytes, kChunk);
  EXPECT_FALSE(Reply());
  allocations_.OnGrowthAnswered(wanted[0].growth, /*is_allowed=*/true);
  const auto reply = Reply();
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->error, kCudaSuccess);
  EXPECT_EQ(reply->address, session_->memory.device_base);
  allocations_.Malloc(session_, {2, 100});
  EXPECT_TRUE(Reply()) << "the chunk has room";
}

TEST_F(DeviceAllocationsTest, WholeNewChunksAwaitTheScheduler) {
  allocations_.Malloc(session_, {1, 3 * kMiB});
  EXPECT_EQ(session_->memory.growth, (memory::Block{0, 2 * kChunk}));
  allocations_.OnGrowthAnswered(events_.Of<scheduler::GrowthWanted>()[0].growth, true);
  EXPECT_EQ(session_->memory.growth.bytes, 0u);
  allocations_.Malloc(session_, {2, 3 * kMiB});
  EXPECT_EQ(session_->memory.growth, (memory::Block{2 * kChunk, kChunk}))
      << "the first allocation has the chunk before";
  allocations_.OnGrowthAnswered(events_.Of<scheduler::GrowthWanted>()[1].growth, true);
  allocations_.Malloc(session_, {3, 100});
  EXPECT_EQ(session_->memory.growth, (memory::Block{3 * kChunk, kChunk}));
}

// The executor would back the rest of a chunk, were it left in the plan.
TEST_F(DeviceAllocationsTest, AJoinedPlanLeavesOutWholeNewChunks) {
  memory::RangeAllocator& device = *session_->memory.device;
  for (std::size_t i = 0; i < 2 * (kMaxPiecesSent + 1); ++i) {
    ASSERT_TRUE(host_.segments.AllocateDevice(*session_, 512).ok());
  }
  bool is_kept = false;
  for (const memory::Block piece : device.Blocks()) {
    if (!std::exchange(is_kept, !is_kept)) device.Free(piece.offset);
  }
  const Bytes before = device.occupied_bytes();
  allocations_.Malloc(session_, {1, kMiB + 512});
  ASSERT_EQ(events_.Of<scheduler::GrowthWanted>().size(), 1u);
  google::protobuf::RepeatedPtrField<v1::Extent> live;
  SetLive(live, device, session_->memory.growth);
  Bytes bytes = 0;
  for (const v1::Extent& extent : live) bytes += extent.bytes();
  EXPECT_EQ(bytes, before);
}

TEST_F(DeviceAllocationsTest, RefusesWhatNoGpuHolds) {
  allocations_.Malloc(session_, {1, 100});
  allocations_.OnGrowthAnswered(events_.Of<scheduler::GrowthWanted>()[0].growth, false);
  EXPECT_EQ(Reply()->error, kCudaErrorMemoryAllocation);
  EXPECT_EQ(session_->memory.device->live_bytes(), 0u);
  EXPECT_TRUE(events_.Of<scheduler::ImageShrunk>().empty()) << "it was never charged";
}

TEST_F(DeviceAllocationsTest, ARefusedAllocationMayBeTheLastOfItsChunks) {
  const Bytes bytes = 3 * kMiB / 2 + 512;
  constexpr Bytes kRecord = memory::BlockStates::kBytesPerBlock;
  const Bytes shared = bytes / wire::kImageBlockBytes;  // a block with bytes of both allocations
  allocations_.Malloc(session_, {1, bytes});
  allocations_.OnGrowthAnswered(events_.Of<scheduler::GrowthWanted>()[0].growth, true);
  const std::uint64_t address = Reply()->address;
  allocations_.Malloc(session_, {2, bytes});
  const int states = session_->memory.files->descriptor(wire::SharedMemory::kBlockStates);
  memory::BlockRecord moved;
  moved.versions[1] = {2, memory::AnnexHome(5), 1};
  const auto at = static_cast<off_t>(shared * kRecord);
  ASSERT_EQ(pwrite(states, &moved, kRecord, at), ssize_t{kRecord});
  allocations_.Free(session_, {3, address});
  loop_.RunAll();
  ASSERT_TRUE(Reply());
  allocations_.OnGrowthAnswered(events_.Of<scheduler::GrowthWanted>()[1].growth, false);
  loop_.RunAll();
  EXPECT_EQ(session_->memory.freed.chunks.total_bytes(), 2 * kChunk);
  EXPECT_EQ(events_.Of<scheduler::ImageShrunk>().at(0).bytes, kChunk);
  ASSERT_EQ(pread(states, &moved, kRecord, at), ssize_t{kRecord});
  EXPECT_EQ(moved.versions[1].home, memory::kOwnPlace);
}

TEST_F(DeviceAllocationsTest, RefusesMoreThanTheLimit) {
  allocations_.Malloc(session_, {1, 49 * kMiB});
  const auto reply = Reply();
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->error, kCudaErrorMemoryAllocation);
  EXPECT_NE(reply->message.find("memory_limit"), std::string::npos);
}

TEST_F(DeviceAllocationsTest, GrowsTheImageOnItsGpu) {
  Land(session_, 0);
  allocations_.Malloc(session_, {1, kChunk});
  allocations_.OnGrowthAnswered(events_.Of<scheduler::GrowthWanted>()[0].growth, true);
  EXPECT_TRUE(Operation(0).has_grow());
  EXPECT_FALSE(Reply());
  Answer(0, absl::ResourceExhaustedError("full"));
  EXPECT_EQ(Reply()->error, kCudaErrorMemoryAllocation);
  EXPECT_EQ(events_.Of<scheduler::ImageShrunk>().size(), 1u);
}

TEST_F(DeviceAllocationsTest, FreesOnTheGpuAndLeavesPagesForLater) {
  const std::uint64_t address = Malloc();
  Land(session_, 0);
  allocations_.Free(session_, {2, address});
  EXPECT_TRUE(Operation(0).has_shrink());
  EXPECT_FALSE(Reply());
  Answer(0);
  EXPECT_EQ(Reply()->error, kCudaSuccess);
  EXPECT_TRUE(IsQuiet(0) && IsQuiet(1));
  EXPECT_EQ(session_->memory.freed.chunks.total_bytes(), kChunk);
  EXPECT_EQ(events_.Of<scheduler::ImageShrunk>().at(0).bytes, kChunk);
}

TEST_F(DeviceAllocationsTest, AnAllocationHasTheRoomOfEarlierFrees) {
  const std::uint64_t address = Malloc();
  Land(session_, 0);
  allocations_.Free(session_, {2, address});
  allocations_.Malloc(session_, {3, 48 * kMiB});
  EXPECT_FALSE(Reply()) << "the memory is freed first";
  Answer(0);
  EXPECT_EQ(Reply()->error, kCudaSuccess);
  EXPECT_EQ(events_.Of<scheduler::GrowthWanted>().back().bytes, 48 * kMiB);
}

TEST_F(DeviceAllocationsTest, KnowsNoOtherAddresses) {
  allocations_.Free(session_, {1, 12345});
  EXPECT_EQ(Reply()->error, kCudaErrorInvalidValue);
}

TEST_F(DeviceAllocationsTest, WhatOthersHaveOpenIsFreedWhenTheyCloseIt) {
  const std::uint64_t address = Malloc();
  session_->shared.Share(0);
  session_->shared.Open(0, SessionId{99});
  allocations_.Free(session_, {2, address});
  EXPECT_EQ(Reply()->error, kCudaSuccess);
  EXPECT_GT(session_->memory.device->live_bytes(), 0u);
  allocations_.Free(session_, {3, address});
  EXPECT_EQ(Reply()->error, kCudaErrorInvalidValue);
}

TEST_F(DeviceAllocationsTest, TellsWhatIsFree) {
  Malloc();
  allocations_.GetInfo(*session_, {7});
  const auto info = LinkOf(session_).Take<wire::MemGetInfoReply>();
  ASSERT_TRUE(info);
  EXPECT_EQ(info->total_bytes, 48 * kMiB);
  EXPECT_EQ(info->free_bytes, 46 * kMiB);
}

TEST_F(DeviceAllocationsTest, LimitsCountAllProcessesOfADevice) {
  Malloc();
  const FunctionInstance& a = InstanceOf("a");
  EXPECT_EQ(limits_.LiveBytes(a, 0), kChunk);
  EXPECT_EQ(limits_.LiveBytes(a, 1), 0u);
  InstanceOf("a").function->config.memory_limit = 0;
  EXPECT_EQ(limits_.LimitOf(a), kPool) << "all that a GPU offers";
}

}  // namespace
}  // namespace torpor::server
