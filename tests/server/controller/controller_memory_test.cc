#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "server/controller/cuda_errors.h"
#include "tests/server/controller/controller_harness.h"

namespace torpor::server {
namespace {

class ControllerMemory : public ControllerHarness {
 protected:
  const v1::DaemonMessage* LastOperation() {
    return executors_[0].link->log.empty() ? nullptr : &executors_[0].link->log.back();
  }
};

TEST_F(ControllerMemory, AddressesNeedNoLease) {
  StartExecutor(0);
  Client a = Connect("token-a");
  const auto first = Malloc(a, 1000);
  const auto second = Malloc(a, 5 * kMiB);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->error, 0);
  EXPECT_EQ(first->address % 512, 0u);
  EXPECT_GE(first->address, a.hello.device_base);
  EXPECT_LT(second->address, a.hello.device_base + a.hello.device_bytes);
  EXPECT_FALSE(executors_[0].link->log.back().has_grow());
}

TEST_F(ControllerMemory, LimitIsTheFunctions) {
  StartExecutor(0);
  Client one = Connect("token-a");
  Client two = Connect("token-a");
  EXPECT_EQ(Malloc(one, 30 * kMiB)->error, 0);
  EXPECT_EQ(Malloc(two, 20 * kMiB)->error, kCudaErrorMemoryAllocation);
  EXPECT_EQ(Malloc(two, 18 * kMiB)->error, 0);
  EXPECT_EQ(Malloc(two, 512)->error, kCudaErrorMemoryAllocation);
  EXPECT_EQ(Malloc(two, 0)->error, kCudaErrorMemoryAllocation);
  EXPECT_EQ(Malloc(two, ~Bytes{0})->error, kCudaErrorMemoryAllocation);
  Say(one, wire::MemGetInfo{77});
  const auto info = one.link->Take<wire::MemGetInfoReply>();
  ASSERT_TRUE(info);
  EXPECT_EQ(info->request_id, 77u);
  EXPECT_EQ(info->free_bytes, 0u);
  EXPECT_EQ(info->total_bytes, 48 * kMiB);
}

TEST_F(ControllerMemory, GrowsWhereTheImageIs) {
  StartExecutor(0);
  Client a = Connect("token-a");
  const RequestId request = Acquire("a");
  TakeLease(a);
  const auto block = Malloc(a, 3 * kMiB);
  EXPECT_EQ(block->error, 0);
  ASSERT_TRUE(LastOperation()->has_grow());
  EXPECT_EQ(LastOperation()->grow().extent().bytes(), 3 * kMiB);
  EXPECT_EQ(controller_->Snapshot().gpus[0].used_bytes, 4 * kMiB);
  EXPECT_EQ(Free(a, block->address)->error, 0);
  ASSERT_TRUE(LastOperation()->has_shrink());
  EXPECT_EQ(LastOperation()->shrink().live_size(), 0);
  EXPECT_EQ(controller_->Snapshot().gpus[0].used_bytes, 0u);
  Release(request);
}

TEST_F(ControllerMemory, GrowthEvictsOthers) {
  StartExecutor(0);
  Client a = Connect("token-a");
  Client b = Connect("token-b");
  Malloc(b, 40 * kMiB);
  Serve("b", b);
  Acquire("a");
  TakeLease(a);
  EXPECT_EQ(Malloc(a, 20 * kMiB)->error, 0);
  EXPECT_EQ(counts_.evictions, 0);
  EXPECT_EQ(Malloc(a, 20 * kMiB)->error, 0);
  EXPECT_EQ(counts_.evictions, 1);
  EXPECT_EQ(executors_[0].resident.size(), 1u);
}

TEST_F(ControllerMemory, FailedGrowthIsUndone) {
  StartExecutor(0);
  Client a = Connect("token-a");
  Acquire("a");
  TakeLease(a);
  answers_ = [](const v1::DaemonMessage& operation) -> std::optional<absl::Status> {
    if (operation.has_grow()) return absl::ResourceExhaustedError("no chunk");
    return absl::OkStatus();
  };
  EXPECT_EQ(Malloc(a, 20 * kMiB)->error, kCudaErrorMemoryAllocation);
  answers_ = nullptr;
  EXPECT_EQ(controller_->Snapshot().gpus[0].used_bytes, 0u);
  EXPECT_EQ(Malloc(a, 48 * kMiB)->error, 0);
}

TEST_F(ControllerMemory, FreedBytesDoNotComeBack) {
  StartExecutor(0);
  Client a = Connect("token-a");
  const auto block = Malloc(a, 3 * kMiB);
  const auto memory = repository_.Find(SessionId{a.hello.session_id}, a.hello.session_key);
  ASSERT_TRUE(memory.ok());
  void* image = mmap(nullptr, a.hello.device_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                     (*memory)->descriptor(wire::SharedMemory::kImage), 0);
  ASSERT_NE(image, MAP_FAILED);
  auto* at = static_cast<char*>(image) + (block->address - a.hello.device_base);
  std::memset(at, 0x5a, 3 * kMiB);
  EXPECT_GE(controller_->Snapshot().host_image_bytes, 3 * kMiB);
  EXPECT_EQ(Free(a, block->address)->error, 0);
  EXPECT_EQ(controller_->Snapshot().host_image_bytes, 0u);
  EXPECT_EQ(at[0], 0);
  EXPECT_EQ(at[3 * kMiB - 1], 0);
  munmap(image, a.hello.device_bytes);
}

TEST_F(ControllerMemory, FreeOfWhatWasNotAllocated) {
  StartExecutor(0);
  Client a = Connect("token-a");
  const auto block = Malloc(a, 3 * kMiB);
  EXPECT_EQ(Free(a, block->address + 512)->error, kCudaErrorInvalidValue);
  EXPECT_EQ(Free(a, 0)->error, kCudaErrorInvalidValue);
  EXPECT_EQ(Free(a, block->address)->error, 0);
  EXPECT_EQ(Free(a, block->address)->error, kCudaErrorInvalidValue);
}

TEST_F(ControllerMemory, HostMemoryIsMappedEverywhereFirst) {
  StartExecutor(0);
  Client a = Connect("token-a");
  answers_ = [](const v1::DaemonMessage& operation) -> std::optional<absl::Status> {
    if (operation.has_map_host()) return std::nullopt;
    return absl::OkStatus();
  };
  Say(a, wire::HostAlloc{1, 5000});
  EXPECT_FALSE(a.link->Take<wire::MemoryReply>());
  answers_ = nullptr;
  Settle();
  const auto block = a.link->Take<wire::MemoryReply>();
  ASSERT_TRUE(block);
  EXPECT_EQ(block->address % 4096, 0u);
  EXPECT_EQ(LastOperation()->map_host().extent().bytes(), 8192u);
  Say(a, wire::HostFree{2, block->address});
  EXPECT_EQ(a.link->Take<wire::MemoryReply>()->error, 0);
  EXPECT_TRUE(LastOperation()->has_unmap_host());
  Say(a, wire::HostFree{3, block->address});
  EXPECT_EQ(a.link->Take<wire::MemoryReply>()->error, kCudaErrorInvalidValue);
  Say(a, wire::HostAlloc{4, ~Bytes{0}});
  EXPECT_EQ(a.link->Take<wire::MemoryReply>()->error, kCudaErrorMemoryAllocation);
}

TEST_F(ControllerMemory, SwapInNamesWhatIsLive) {
  StartExecutor(0);
  Client a = Connect("token-a");
  const auto first = Malloc(a, 3 * kMiB);
  Malloc(a, 3 * kMiB);
  Malloc(a, 3 * kMiB);
  Free(a, first->address);
  Acquire("a");
  const auto& log = executors_[0].link->log;
  const auto swap_in = std::find_if(log.begin(), log.end(),
                                    [](const auto& message) { return message.has_swap_in(); });
  ASSERT_NE(swap_in, log.end());
  ASSERT_EQ(swap_in->swap_in().live_size(), 1);
  EXPECT_EQ(swap_in->swap_in().live(0).offset(), 3 * kMiB);
  EXPECT_EQ(swap_in->swap_in().live(0).bytes(), 6 * kMiB);
}

}  // namespace
}  // namespace torpor::server
