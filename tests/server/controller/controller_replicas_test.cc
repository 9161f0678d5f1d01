#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/server/controller/controller_harness.h"

// Images that stay where they were when another GPU fetches them.
namespace torpor::server {
namespace {

// Two GPUs with a fast link; a function whose image is on both, on the second most recently.
class ControllerReplicas : public ControllerHarness {
 protected:
  explicit ControllerReplicas(const std::string& function = "a")
      : ControllerHarness(2), function_(function) {
    has_links_ = true;
    StartExecutor(0);
    StartExecutor(1);
    client_ = Connect("token-" + function);
    block_ = Malloc(client_, 4 * kMiB)->address;
    LoadTo(function, 0);
    LoadTo(function, 1);
  }

  void LoadTo(const std::string& function, int gpu) {
    controller_->Administer({AdminRequest::Kind::kLoad, function, GpuIndex{gpu}},
                            [](const absl::Status&) {});
    Settle();
  }
  bool IsOn(int gpu) const {
    return executors_.at(gpu).resident.count(client_.hello.session_id) > 0;
  }
  // Another function's request takes the GPU, on which only that function's image may be.
  RequestId Take(Client& other, const std::string& function, int gpu) {
    LoadTo(function, gpu);
    const RequestId request = Acquire(function);
    const auto lease = TakeLease(other);
    EXPECT_TRUE(lease && lease->gpu == gpu);
    return request;
  }
  // Operations of the function's session since the last call, in order, on either GPU.
  std::vector<v1::DaemonMessage> Operations(int gpu) {
    const std::vector<v1::DaemonMessage>& log = executors_[gpu].link->log;
    std::size_t& seen = seen_[gpu];
    std::vector<v1::DaemonMessage> fresh(log.begin() + static_cast<std::ptrdiff_t>(seen),
                                         log.end());
    seen = log.size();
    std::erase_if(fresh, [](const v1::DaemonMessage& operation) {
      return !operation.has_swap_in() && !operation.has_swap_out();
    });
    return fresh;
  }

  const std::string function_;
  Client client_;
  std::uint64_t block_ = 0;
  std::map<int, std::size_t> seen_;
};

TEST_F(ControllerReplicas, ACopyStays) {
  EXPECT_TRUE(IsOn(0) && IsOn(1));
  EXPECT_EQ(counts_.swaps_over_links, 1);
  EXPECT_EQ(counts_.evictions, 0);
  const auto functions = controller_->Snapshot().functions;
  EXPECT_EQ(functions.at(0).resident_gpus, (std::vector{0, 1}));
}

TEST_F(ControllerReplicas, ALeaseOnAReplicaComesAfterTheChangesElsewhere) {
  Serve("a", client_);  // on GPU 0, which is free for as long
  Client other = Connect("token-b");
  Malloc(other, 4 * kMiB);
  const std::optional<int> current = [&]() -> std::optional<int> {
    const RequestId request = Acquire("a");
    const auto lease = TakeLease(client_);
    Release(request);
    GiveBack(client_);
    return lease ? std::optional(lease->gpu) : std::nullopt;
  }();
  ASSERT_TRUE(current);
  const int there = 1 - *current;
  const RequestId busy = Take(other, "b", *current);
  Operations(0);
  Operations(1);
  const RequestId request = Acquire("a");
  const auto lease = TakeLease(client_);
  ASSERT_TRUE(lease && IsRunning(request));
  EXPECT_EQ(lease->gpu, there);
  EXPECT_EQ(outcome(request).grant->value().source, SwapSource::kResident);
  const auto left = Operations(*current);
  ASSERT_EQ(left.size(), 1u);
  EXPECT_TRUE(left[0].has_swap_out());
  EXPECT_FALSE(left[0].swap_out().drop());
  EXPECT_FALSE(left[0].swap_out().forgets_changes());
  const auto came = Operations(there);
  ASSERT_EQ(came.size(), 1u);
  EXPECT_TRUE(came[0].swap_in().refreshes());
  EXPECT_TRUE(came[0].swap_in().source_socket_path().empty());
  Release(request);
  Release(busy);
}

TEST_F(ControllerReplicas, WhileItStaysOnOneGpuNothingIsCopied) {
  for (int i = 0; i < 2; ++i) Serve("a", client_);
  Operations(0);
  Operations(1);
  for (int i = 0; i < 3; ++i) Serve("a", client_);
  EXPECT_TRUE(Operations(0).empty() && Operations(1).empty());
}

TEST_F(ControllerReplicas, WithoutRoomAReplicaGoesFirst) {
  Serve("a", client_);
  Client other = Connect("token-b");
  Malloc(other, 40 * kMiB);
  LoadTo("b", 1);
  Client third = Connect("token-c");
  Malloc(third, 22 * kMiB);
  LoadTo("c", 1);
  EXPECT_TRUE(IsOn(0) && !IsOn(1));
  EXPECT_EQ(executors_[1].resident.size(), 2u);
  EXPECT_EQ(counts_.evictions, 1);
}

TEST_F(ControllerReplicas, MemoryComesAndGoesOnAllGpus) {
  const auto block = Malloc(client_, 2 * kMiB);
  ASSERT_EQ(block->error, 0);
  for (const int gpu : {0, 1}) {
    const auto& last = executors_[gpu].link->log.back();
    ASSERT_TRUE(last.has_grow()) << gpu;
    EXPECT_EQ(last.grow().is_replica(), gpu == 0);
  }
  EXPECT_EQ(Free(client_, block_)->error, 0);
  for (const int gpu : {0, 1}) {
    const auto& log = executors_[gpu].link->log;
    EXPECT_TRUE(std::any_of(log.begin(), log.end(), [](const v1::DaemonMessage& operation) {
      return operation.has_shrink();
    })) << gpu;
  }
}

TEST_F(ControllerReplicas, ProcessesThatShareMemoryLeaveNone) {
  Client second = Connect("token-a");
  Say(client_, wire::ShareMemory{50, block_});
  ASSERT_TRUE(client_.link->Take<wire::ShareMemoryReply>());
  const RequestId request = Acquire("a");
  const auto lease = TakeLease(client_);
  ASSERT_TRUE(lease && TakeLease(second));
  EXPECT_TRUE(IsOn(lease->gpu));
  EXPECT_FALSE(IsOn(1 - lease->gpu)) << "others may change the image";
  Release(request);
}

TEST_F(ControllerReplicas, ADeadExecutorsCopyIsNoLoss) {
  Serve("a", client_);
  KillExecutor(1);
  Serve("a", client_);
  StartExecutor(1);
  LoadTo("a", 1);
  EXPECT_TRUE(IsOn(0) && IsOn(1));
  KillExecutor(0);
  Serve("a", client_);
  EXPECT_FALSE(client_.link->closed);
}

TEST_F(ControllerReplicas, ASessionThatClosesLeavesAllGpus) {
  Disconnect(client_);
  EXPECT_TRUE(executors_[0].sessions.empty() && executors_[1].sessions.empty());
  EXPECT_FALSE(IsOn(0) || IsOn(1));
}

class StatelessReplicas : public ControllerReplicas {
 protected:
  StatelessReplicas() : ControllerReplicas("b") {}
};

TEST_F(StatelessReplicas, WhatRequestsHaveChangedIsNotWrittenBack) {
  for (int i = 0; i < 2; ++i) Serve("b", client_);
  Client other = Connect("token-a");
  Malloc(other, 4 * kMiB);
  const RequestId first = Acquire("b");
  const auto lease = TakeLease(client_);
  ASSERT_TRUE(lease);
  Release(first);
  GiveBack(client_);
  const RequestId busy = Take(other, "a", lease->gpu);
  Operations(lease->gpu);
  const RequestId request = Acquire("b");
  const auto hop = TakeLease(client_);
  ASSERT_TRUE(hop);
  EXPECT_NE(hop->gpu, lease->gpu);
  const auto left = Operations(lease->gpu);
  ASSERT_EQ(left.size(), 1u);
  EXPECT_TRUE(left[0].swap_out().forgets_changes());
  Release(request);
  Release(busy);
}

}  // namespace
}  // namespace torpor::server
