#include "server/controller/memory/host_allocations.h"

#include "server/controller/model/cuda_errors.h"
#include "tests/server/controller/node_world.h"

namespace torpor::server {
namespace {

class HostAllocationsTest : public NodeWorld {
 protected:
  std::optional<wire::MemoryReply> Reply() { return LinkOf(session_).Take<wire::MemoryReply>(); }

  const MemoryLimits limits_{tables_.sessions, tables_.executors, kChunk};
  HostAllocations allocations_{tables_.instances, tables_.executors, limits_,
                               host_.segments,    host_.room,        loop_};
  const SessionPtr session_ = AddSession("a");
};

TEST_F(HostAllocationsTest, AllExecutorsMapABlock) {
  allocations_.Alloc(session_, {1, 100});
  loop_.RunAll();
  EXPECT_TRUE(Operation(0).has_map_host());
  EXPECT_TRUE(Operation(1).has_map_host());
  EXPECT_FALSE(Reply());
  Settle();
  const auto reply = Reply();
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->address, session_->memory.host_base);
  EXPECT_EQ(session_->memory.host_blocks.size(), 1u);
}

TEST_F(HostAllocationsTest, IsUndoneWhereAnExecutorCannotMapIt) {
  allocations_.Alloc(session_, {1, 100});
  Answer(0, absl::ResourceExhaustedError("full"));
  Answer(1);
  EXPECT_TRUE(Operation(1).has_unmap_host());
  Settle();
  EXPECT_EQ(Reply()->error, kCudaErrorMemoryAllocation);
  EXPECT_TRUE(session_->memory.host_blocks.empty());
}

TEST_F(HostAllocationsTest, FreesABlockOnce) {
  allocations_.Alloc(session_, {1, 100});
  Settle();
  const std::uint64_t address = Reply()->address;
  allocations_.Free(session_, {2, address});
  Settle();
  EXPECT_EQ(Reply()->error, kCudaSuccess);
  EXPECT_TRUE(session_->memory.host_blocks.empty());
  allocations_.Free(session_, {3, address});
  EXPECT_EQ(Reply()->error, kCudaErrorInvalidValue);
}

TEST_F(HostAllocationsTest, AnInstanceHasSoMuchPinnedMemory) {
  tables_.instances.FindFunction("a")->config.pinned_limit = 64 * kKiB;
  const SessionPtr other = AddSession("a");
  allocations_.Alloc(other, {1, 48 * kKiB});
  Settle();
  const std::uint64_t address = LinkOf(other).Take<wire::MemoryReply>()->address;
  allocations_.Alloc(session_, {2, 16 * kKiB + 1});
  const auto refused = Reply();
  ASSERT_TRUE(refused) << "at once, and no executor hears of it";
  EXPECT_EQ(refused->error, kCudaErrorMemoryAllocation);
  EXPECT_EQ(refused->message,
            "cannot allocate 16385 bytes of pinned memory: function a has 49152 of its "
            "pinned_limit 65536");
  allocations_.Free(other, {3, address});
  Settle();
  allocations_.Alloc(session_, {4, 64 * kKiB});
  Settle();
  EXPECT_EQ(Reply()->error, kCudaSuccess);
}

TEST_F(HostAllocationsTest, WithoutALimitThereIsRoomForCopiesOfItsGpuMemory) {
  const FunctionInstance& pair = InstanceOf("pair");
  EXPECT_EQ(limits_.PinnedLimitOf(pair), kLeastPinned);
  pair.function->config.memory_limit = kGiB;
  EXPECT_EQ(limits_.PinnedLimitOf(pair), 2 * kGiB) << "on two GPUs";
}

TEST_F(HostAllocationsTest, ASecondarySessionHasNoArena) {
  const SessionPtr primary = AddSession("pair");
  const SessionPtr secondary = AddSession("pair", 1, primary);
  allocations_.Alloc(secondary, {1, 100});
  EXPECT_EQ(LinkOf(secondary).Take<wire::MemoryReply>()->error, kCudaErrorMemoryAllocation);
}

}  // namespace
}  // namespace torpor::server
