#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "server/controller/model/cuda_errors.h"
#include "tests/server/controller/controller_harness.h"

namespace torpor::server {
namespace {

class ControllerMemory : public ControllerHarness {
 protected:
  explicit ControllerMemory(int gpus = 1) : ControllerHarness(gpus) {}

  const v1::DaemonMessage* LastOperation() {
    return executors_[0].link->log.empty() ? nullptr : &executors_[0].link->log.back();
  }
  // Lets the second pass after which pages may go.
  void GiveFreedPagesBack() {
    loop_.Advance(std::chrono::seconds(1));
    Settle();
  }
  Bytes HostImageBytes() { return controller_->Snapshot().host_image_bytes; }
  // What the client's image holds of its addresses, as an executor would write and read it.
  void Write(const Client& client, std::uint64_t address, Bytes bytes) {
    const std::string text(bytes, 'x');
    EXPECT_EQ(pwrite(Image(client), text.data(), bytes, Offset(client, address)),
              static_cast<ssize_t>(bytes));
  }
  bool IsZero(const Client& client, std::uint64_t address, Bytes bytes) {
    std::string text(bytes, '?');
    EXPECT_EQ(pread(Image(client), text.data(), bytes, Offset(client, address)),
              static_cast<ssize_t>(bytes));
    return text == std::string(bytes, '\0');
  }

 private:
  int Image(const Client& client) {
    return (*repository_.Find(SessionId{client.hello.session_id}, client.hello.session_key))
        ->descriptor(wire::SharedMemory::kImage);
  }
  static off_t Offset(const Client& client, std::uint64_t address) {
    return static_cast<off_t>(address - client.hello.device_base);
  }
};

class ControllerMemoryOfTwoGpus : public ControllerMemory {
 protected:
  ControllerMemoryOfTwoGpus() : ControllerMemory(2) {}
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

class ControllerHostBudget : public ControllerHarness {
 protected:
  ControllerHostBudget() {
    options_.host_budget = 20 * kMiB;
    RestartTorpord();
  }
};

TEST_F(ControllerHostBudget, AFunctionIsToldWhoseMemoryDoesNotFit) {
  StartExecutor(0);
  Client a = Connect("token-a");
  Client b = Connect("token-b");
  const auto first = Malloc(a, 16 * kMiB);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->error, 0) << first->message;
  const auto second = Malloc(b, 8 * kMiB);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->error, kCudaErrorMemoryAllocation);
  EXPECT_NE(second->message.find("8MiB more are needed"), std::string::npos) << second->message;
  EXPECT_NE(second->message.find("host_memory 20MiB"), std::string::npos) << second->message;
  EXPECT_EQ(controller_->Snapshot().host_memory.refusals, 1u);
  EXPECT_EQ(Free(a, first->address)->error, 0);
  EXPECT_EQ(Malloc(b, 8 * kMiB)->error, 0);
  Disconnect(a);
  Disconnect(b);
  Settle();
  EXPECT_EQ(controller_->Snapshot().host_memory.used, 0u);
}

class ControllerMemoryApart : public ControllerHarness {
 protected:
  ControllerMemoryApart() : ControllerHarness(1, AddressMode::kTranslate) {}
};

TEST_F(ControllerMemoryApart, NobodysAddressesAreBehindWhatMayLieElsewhere) {
  StartExecutor(0);
  Client a = Connect("token-a");
  const std::uint64_t first = Malloc(a, kChunk)->address;
  const std::uint64_t second = Malloc(a, kChunk)->address;
  EXPECT_EQ((first - a.hello.device_base) % kChunk, 0u);
  EXPECT_GT(second, first + kChunk);
}

TEST_F(ControllerMemoryApart, AFunctionCanAllocateItsLimitInWhateverPieces) {
  StartExecutor(0);
  Client a = Connect("token-a");
  for (int i = 0; i < 24; ++i) EXPECT_EQ(Malloc(a, kChunk)->error, 0) << i;
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

TEST_F(ControllerMemory, OnlyAStatelessFunctionThatIsSetUpForgetsChanges) {
  StartExecutor(0);
  const auto evict = [this](const std::string& function) {
    Hold(&v1::DaemonMessage::has_swap_out);
    controller_->Administer({.kind = AdminRequest::Kind::kEvict, .function = function},
                            [](const absl::Status&) {});
    Settle();
    const v1::DaemonMessage last = *LastOperation();
    answers_ = nullptr;
    Settle();
    return last.swap_out().drop() && last.swap_out().forgets_changes();
  };
  for (const char* name : {"a", "b"}) {
    Client client = Connect(std::string("token-") + name);
    Malloc(client, kMiB);
    Serve(name, client);
  }
  EXPECT_FALSE(evict("a"));
  EXPECT_TRUE(evict("b"));
}

TEST_F(ControllerMemory, FailedGrowthIsUndone) {
  StartExecutor(0);
  Client a = Connect("token-a");
  Acquire("a");
  TakeLease(a);
  Refuse(&v1::DaemonMessage::has_grow, absl::ResourceExhaustedError("no chunk"));
  EXPECT_EQ(Malloc(a, 20 * kMiB)->error, kCudaErrorMemoryAllocation);
  answers_ = nullptr;
  EXPECT_EQ(controller_->Snapshot().gpus[0].used_bytes, 0u);
  EXPECT_EQ(Malloc(a, 48 * kMiB)->error, 0);
}

TEST_F(ControllerMemory, FreedBytesDoNotComeBack) {
  StartExecutor(0);
  Client a = Connect("token-a");
  const auto block = Malloc(a, 3 * kMiB);
  const auto other = Malloc(a, 5 * kMiB);
  Write(a, block->address, 3 * kMiB);
  Write(a, other->address, 5 * kMiB);
  EXPECT_EQ(HostImageBytes(), 8 * kMiB);
  EXPECT_EQ(Free(a, block->address)->error, 0);
  GiveFreedPagesBack();
  EXPECT_EQ(HostImageBytes(), 6 * kMiB) << "the other's chunks stay whole";
  EXPECT_TRUE(IsZero(a, block->address, 3 * kMiB));
  EXPECT_FALSE(IsZero(a, other->address, 1));
  EXPECT_EQ(Free(a, other->address)->error, 0);
  GiveFreedPagesBack();
  EXPECT_EQ(HostImageBytes(), 0u);
  EXPECT_TRUE(IsZero(a, other->address, 5 * kMiB));
}

TEST_F(ControllerMemory, FreedBytesDoNotComeBackWithANewAllocation) {
  StartExecutor(0);
  Client a = Connect("token-a");
  const auto block = Malloc(a, 6 * kMiB);
  Write(a, block->address, 6 * kMiB);
  EXPECT_EQ(Free(a, block->address)->error, 0);
  EXPECT_EQ(HostImageBytes(), 6 * kMiB) << "nobody has let go yet";
  const auto next = Malloc(a, 3 * kMiB);
  ASSERT_EQ(next->address, block->address);
  EXPECT_TRUE(IsZero(a, next->address, 4 * kMiB)) << "whole chunks";
  Write(a, next->address, 3 * kMiB);
  GiveFreedPagesBack();
  EXPECT_FALSE(IsZero(a, next->address, 1)) << "in use again";
  EXPECT_EQ(HostImageBytes(), 4 * kMiB);
}

TEST_F(ControllerMemory, ExecutorsLetGoOfFreedPagesFirst) {
  StartExecutor(0);
  Client a = Connect("token-a");
  const auto block = Malloc(a, 4 * kMiB);
  Serve("a", a);
  Write(a, block->address, 4 * kMiB);
  EXPECT_EQ(Free(a, block->address)->error, 0);
  Hold(&v1::DaemonMessage::has_release_image);
  GiveFreedPagesBack();
  ASSERT_TRUE(LastOperation()->has_release_image());
  EXPECT_EQ(LastOperation()->release_image().extent().bytes(), 4 * kMiB);
  EXPECT_TRUE(LastOperation()->release_image().only_when_idle());
  EXPECT_EQ(HostImageBytes(), 4 * kMiB);
  answers_ = nullptr;
  Settle();
  EXPECT_EQ(HostImageBytes(), 0u);
}

// Executors pin images that they have never had.
TEST_F(ControllerMemoryOfTwoGpus, EveryExecutorLetsGoOfFreedPages) {
  StartExecutor(0);
  StartExecutor(1);
  Client a = Connect("token-a");
  const auto block = Malloc(a, 4 * kMiB);
  EXPECT_EQ(Free(a, block->address)->error, 0);
  GiveFreedPagesBack();
  for (const int gpu : {0, 1}) {
    EXPECT_TRUE(executors_[gpu].link->log.back().has_release_image()) << gpu;
  }
}

TEST_F(ControllerMemory, FreedPagesWaitForIdleGpusButNotForever) {
  StartExecutor(0);
  Client a = Connect("token-a");
  const auto block = Malloc(a, 4 * kMiB);
  Write(a, block->address, 4 * kMiB);
  EXPECT_EQ(Free(a, block->address)->error, 0);
  answers_ = [](const v1::DaemonMessage& operation) -> std::optional<absl::Status> {
    if (!operation.release_image().only_when_idle()) return absl::OkStatus();
    return absl::AbortedError("a session works");
  };
  GiveFreedPagesBack();
  EXPECT_EQ(HostImageBytes(), 4 * kMiB);
  for (int i = 0; i < 30; ++i) GiveFreedPagesBack();
  EXPECT_EQ(HostImageBytes(), 0u);
}

TEST_F(ControllerMemory, FreedPagesStayUnderALease) {
  StartExecutor(0);
  Client a = Connect("token-a");
  const RequestId request = Acquire("a");
  TakeLease(a);
  const auto block = Malloc(a, 4 * kMiB);
  Write(a, block->address, 4 * kMiB);
  EXPECT_EQ(Free(a, block->address)->error, 0);
  GiveFreedPagesBack();
  EXPECT_TRUE(LastOperation()->has_shrink());
  Release(request);
  EXPECT_TRUE(GiveBack(a));
  GiveFreedPagesBack();
  EXPECT_EQ(HostImageBytes(), 0u);
}

TEST_F(ControllerMemory, PagesThatAnExecutorKeepsStayWithTheFile) {
  StartExecutor(0);
  Client a = Connect("token-a");
  const auto block = Malloc(a, 4 * kMiB);
  Serve("a", a);
  Write(a, block->address, 4 * kMiB);
  Refuse(&v1::DaemonMessage::has_release_image, absl::DeadlineExceededError("it still works"));
  EXPECT_EQ(Free(a, block->address)->error, 0);
  GiveFreedPagesBack();
  EXPECT_EQ(HostImageBytes(), 4 * kMiB);
  EXPECT_FALSE(IsZero(a, block->address, 1));
  answers_ = nullptr;
  GiveFreedPagesBack();
  EXPECT_EQ(HostImageBytes(), 0u) << "asked again";
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
  Hold(&v1::DaemonMessage::has_map_host);
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

TEST_F(ControllerMemory, SwapInFollowsTheOrderThatALeaseHasShown) {
  StartExecutor(0);
  Client a = Connect("token-a");
  Client b = Connect("token-b");
  const auto first = Malloc(a, 20 * kMiB);
  const auto second = Malloc(a, 20 * kMiB);
  Malloc(b, 40 * kMiB);
  learned_ = [&](const v1::DaemonMessage& operation) {
    v1::Learned learned;
    const Bytes begin = a.hello.device_base;
    if (operation.end_lease().session_id() == a.hello.session_id) {
      learned.add_touched(second->address - begin);
      learned.add_touched(first->address - begin);
    }
    if (operation.swap_out().session_id() == a.hello.session_id) {
      learned.add_address_holders(first->address - begin);
      learned.set_searched_whole_image(true);
    }
    return learned;
  };
  Serve("a", a);
  Serve("b", b);
  Serve("a", a);
  Serve("a", a);
  Serve("a", a);
  v1::DaemonMessage::SwapIn last;
  std::vector<bool> learns;
  for (const v1::DaemonMessage& operation : executors_[0].link->log) {
    if (operation.swap_in().session_id() == a.hello.session_id) last = operation.swap_in();
    const v1::DaemonMessage::BeginLease& lease = operation.begin_lease();
    if (lease.session_id() == a.hello.session_id) learns.push_back(lease.learn());
  }
  ASSERT_EQ(last.live_size(), 2);
  EXPECT_EQ(last.live(0).offset(), second->address - a.hello.device_base);
  EXPECT_FALSE(last.live(0).holds_addresses());
  EXPECT_EQ(last.live(1).offset(), first->address - a.hello.device_base);
  EXPECT_TRUE(last.live(1).holds_addresses());
  EXPECT_EQ(learns, (std::vector<bool>{true, true, true, false})) << "until leases agree";
}

TEST_F(ControllerMemory, ALeaseBeginsWhileTheImageIsOnItsWay) {
  StartExecutor(0);
  Client a = Connect("token-a");
  Malloc(a, 4 * kMiB);
  completes_swap_ins_ = false;
  Serve("a", a);
  EXPECT_EQ(counts_.swaps_in, 0) << "counted when it is there";
  CompleteSwapIn(0, a);
  EXPECT_EQ(counts_.swaps_in, 1);
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
  ASSERT_EQ(swap_in->swap_in().live_size(), 2);
  EXPECT_EQ(swap_in->swap_in().live(0).offset(), 3 * kMiB);
  EXPECT_EQ(swap_in->swap_in().live(0).bytes(), 3 * kMiB);
  EXPECT_EQ(swap_in->swap_in().live(1).offset(), 6 * kMiB);
  EXPECT_FALSE(swap_in->swap_in().is_whole());
}

}  // namespace
}  // namespace torpor::server
