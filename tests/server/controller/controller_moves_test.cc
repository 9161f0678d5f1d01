#include "tests/server/controller/controller_harness.h"

// Images that come from another GPU's copy, which leaves.
namespace torpor::server {
namespace {

// Two GPUs with a fast link, and a function whose image is on the first.
class ControllerMoves : public ControllerHarness {
 protected:
  explicit ControllerMoves(const std::string& function = "a")
      : ControllerHarness(2, AddressMode::kMap,
                          [](Config& config) { config.scheduling.keep_replicas = false; }),
        function_(function) {
    has_links_ = true;
    StartExecutor(0);
    StartExecutor(1);
    client_ = Connect("token-" + function);
    Malloc(client_, 4 * kMiB);
    LoadTo(function, 0);
  }

  void LoadTo(const std::string& function, int gpu) {
    controller_->Administer({AdminRequest::Kind::kLoad, function, GpuIndex{gpu}},
                            [](const absl::Status&) {});
    Settle();
  }
  void Evict(const std::string& function) {
    controller_->Administer({AdminRequest::Kind::kEvict, function}, [](const absl::Status&) {});
    Settle();
  }
  bool IsOn(int gpu) const {
    return executors_.at(gpu).resident.count(client_.hello.session_id) > 0;
  }
  bool CameFromTheOther(int gpu) const {
    return executors_.at(gpu).sourced.count(client_.hello.session_id) > 0;
  }
  // The last operation of a kind that the GPU's executor was sent.
  v1::DaemonMessage Last(int gpu, Kind kind) {
    v1::DaemonMessage last;
    for (const v1::DaemonMessage& operation : executors_[gpu].link->log) {
      if ((operation.*kind)()) last = operation;
    }
    return last;
  }

  const std::string function_;
  Client client_;
};

TEST_F(ControllerMoves, AnImageIsCopiedFromWhereItIsAndThenDroppedThere) {
  completes_swap_ins_ = false;
  std::optional<absl::Status> loaded;
  controller_->Administer({AdminRequest::Kind::kLoad, "a", GpuIndex{1}},
                          [&](const absl::Status& status) { loaded = status; });
  Settle();
  EXPECT_EQ(Last(1, &v1::DaemonMessage::has_swap_in).swap_in().source_socket_path(),
            "/nowhere/peers-0.sock");
  EXPECT_FALSE(Last(0, &v1::DaemonMessage::has_swap_out).swap_out().drop()) << "written back";
  EXPECT_TRUE(IsOn(0) && IsOn(1)) << "while it is copied";
  EXPECT_FALSE(loaded);
  CompleteSwapIn(1, client_);
  EXPECT_FALSE(IsOn(0));
  EXPECT_TRUE(Last(0, &v1::DaemonMessage::has_swap_out).swap_out().forgets_changes());
  EXPECT_TRUE(Last(1, &v1::DaemonMessage::has_release_source).has_release_source());
  EXPECT_EQ(counts_.swaps_over_links, 1);
  EXPECT_EQ(counts_.evictions, 1);
  EXPECT_TRUE(loaded && loaded->ok());
}

TEST_F(ControllerMoves, ARequestRunsWhileItsImageIsCopied) {
  Client other = Connect("token-b");
  Malloc(other, 4 * kMiB);
  LoadTo("b", 0);
  completes_swap_ins_ = false;
  Acquire("b");
  ASSERT_TRUE(TakeLease(other));
  const RequestId request = Acquire("a");
  const auto lease = TakeLease(client_);
  ASSERT_TRUE(lease && IsRunning(request));
  EXPECT_EQ(lease->gpu, 1);
  EXPECT_EQ(outcome(request).grant->value().source, SwapSource::kPeer);
  EXPECT_TRUE(IsOn(0)) << "it is still copied from there";
  Release(request);
  ASSERT_TRUE(GiveBack(client_));
  CompleteSwapIn(1, client_);
  EXPECT_FALSE(IsOn(0));
}

TEST_F(ControllerMoves, ItMovesBackAndForth) {
  for (int round = 0; round < 3; ++round) {
    LoadTo("a", 1);
    EXPECT_TRUE(IsOn(1) && CameFromTheOther(1) && !IsOn(0));
    Serve("a", client_);
    LoadTo("a", 0);
    EXPECT_TRUE(IsOn(0) && CameFromTheOther(0) && !IsOn(1));
  }
}

TEST_F(ControllerMoves, ASourceThatDiesInTheMiddleLosesNothing) {
  completes_swap_ins_ = false;
  LoadTo("a", 1);
  KillExecutor(0);
  CompleteSwapIn(1, client_);
  EXPECT_TRUE(Last(1, &v1::DaemonMessage::has_release_source).has_release_source())
      << "or its successor lacks memory";
  completes_swap_ins_ = true;
  StartExecutor(0);
  Serve("a", client_);
  LoadTo("a", 0);
  EXPECT_TRUE(IsOn(0) && !IsOn(1));
  EXPECT_FALSE(client_.link->closed);
}

TEST_F(ControllerMoves, ASourceThatDiesBeforeItIsAskedLosesNothing) {
  Hold(&v1::DaemonMessage::has_swap_out);
  LoadTo("a", 1);
  answers_ = nullptr;
  KillExecutor(0);
  EXPECT_TRUE(IsOn(1));
  EXPECT_FALSE(CameFromTheOther(1));
}

TEST_F(ControllerMoves, AfterAWriteBackThatFailsItComesFromTheHost) {
  Refuse(&v1::DaemonMessage::has_swap_out, absl::InternalError("no"));
  LoadTo("a", 1);
  ASSERT_EQ(processes_.killed.size(), 1u);
  EXPECT_EQ(processes_.killed[0].first, GpuIndex{0});
  EXPECT_FALSE(IsOn(1)) << "what was there alone must be known to be lost first";
  answers_ = nullptr;
  KillExecutor(0);
  EXPECT_TRUE(IsOn(1));
  EXPECT_FALSE(CameFromTheOther(1));
}

TEST_F(ControllerMoves, TheEndOfAnEarlierSwapInEndsNoLaterOne) {
  Evict("a");
  completes_swap_ins_ = false;
  LoadTo("a", 0);
  LoadTo("a", 1);
  CompleteSwapIn(0, client_);
  EXPECT_TRUE(IsOn(0)) << "it is still copied from";
  CompleteSwapIn(1, client_);
  EXPECT_FALSE(IsOn(0));
}

TEST_F(ControllerMoves, ASourceStaysUntilItIsLetGoOf) {
  Hold(&v1::DaemonMessage::has_release_source);
  LoadTo("a", 1);
  EXPECT_TRUE(IsOn(0));
  answers_ = nullptr;
  Settle();
  EXPECT_FALSE(IsOn(0));
}

TEST_F(ControllerMoves, ATargetThatDiesInTheMiddleLosesNothing) {
  completes_swap_ins_ = false;
  LoadTo("a", 1);
  KillExecutor(1);
  EXPECT_FALSE(IsOn(0)) << "the host has it";
  completes_swap_ins_ = true;
  Serve("a", client_);
  EXPECT_TRUE(IsOn(0));
}

TEST_F(ControllerMoves, ATargetThatDiesBeforeItAnswersLosesNothing) {
  Hold(&v1::DaemonMessage::has_swap_in);
  LoadTo("a", 1);
  answers_ = nullptr;
  KillExecutor(1);
  EXPECT_FALSE(IsOn(0)) << "the host has it";
  Serve("a", client_);
  EXPECT_TRUE(IsOn(0));
}

TEST_F(ControllerMoves, ATargetWithoutRoomLeavesItOnTheHost) {
  Refuse(&v1::DaemonMessage::has_swap_in, absl::ResourceExhaustedError("full"));
  LoadTo("a", 1);
  answers_ = nullptr;
  EXPECT_FALSE(IsOn(0) || IsOn(1));
  Serve("a", client_);
}

TEST_F(ControllerMoves, WhatIsAllocatedMeanwhileTakesNoMemoryWhereTheImageLeaves) {
  Hold(&v1::DaemonMessage::has_swap_in);
  LoadTo("a", 1);
  ASSERT_FALSE(Malloc(client_, 4 * kMiB)) << "it waits for the swap-in";
  // No GPU has room, neither for the image nor for what nobody has counted.
  answers_ = [](const v1::DaemonMessage& operation) {
    return operation.has_swap_in() || operation.has_grow() ? absl::ResourceExhaustedError("full")
                                                           : absl::OkStatus();
  };
  Settle();
  const auto block = client_.link->Take<wire::MemoryReply>();
  ASSERT_TRUE(block);
  EXPECT_EQ(block->error, 0) << block->message;
  EXPECT_FALSE(Last(0, &v1::DaemonMessage::has_grow).has_grow());
  answers_ = nullptr;
  Settle();
  EXPECT_FALSE(IsOn(0) || IsOn(1));
  Serve("a", client_);
  EXPECT_EQ(Free(client_, block->address)->error, 0);
  LoadTo("a", IsOn(0) ? 1 : 0);
  EXPECT_TRUE(CameFromTheOther(0) || CameFromTheOther(1)) << "what failed once is possible again";
}

TEST_F(ControllerMoves, WhatIsAllocatedDuringTheCopiesTakesNoMemoryWhereTheImageLeaves) {
  completes_swap_ins_ = false;
  LoadTo("a", 1);
  ASSERT_TRUE(IsOn(0) && IsOn(1));
  const auto block = Malloc(client_, 4 * kMiB);
  ASSERT_TRUE(block);
  EXPECT_EQ(block->error, 0) << block->message;
  EXPECT_TRUE(Last(1, &v1::DaemonMessage::has_grow).has_grow());
  EXPECT_FALSE(Last(0, &v1::DaemonMessage::has_grow).has_grow())
      << "the scheduler has promised that room to others";
  CompleteSwapIn(1, client_);
  EXPECT_TRUE(IsOn(1) && !IsOn(0));
}

TEST_F(ControllerMoves, ASessionThatClosesKeepsItsSourceUntilAllIsCopied) {
  completes_swap_ins_ = false;
  LoadTo("a", 1);
  Disconnect(client_);
  EXPECT_TRUE(IsOn(0)) << "its memory would be another function's";
  CompleteSwapIn(1, client_);
  EXPECT_FALSE(IsOn(0) || IsOn(1));
  EXPECT_TRUE(executors_[0].sessions.empty());
  EXPECT_TRUE(executors_[1].sessions.empty());
  EXPECT_TRUE(processes_.killed.empty());
}

TEST_F(ControllerMoves, AllSessionsOfAFunctionMove) {
  Client second = Connect("token-a");
  Malloc(second, 4 * kMiB);
  Evict("a");
  LoadTo("a", 0);
  ASSERT_EQ(executors_[0].resident.size(), 2u);
  LoadTo("a", 1);
  EXPECT_EQ(executors_[1].sourced.size(), 2u);
  EXPECT_TRUE(executors_[0].resident.empty());
}

TEST_F(ControllerMoves, WhatOthersHaveOpenComesFromTheHost) {
  Client second = Connect("token-a");
  const auto block = Malloc(client_, 4 * kMiB);
  Say(client_, wire::ShareMemory{50, block->address});
  const auto shared = client_.link->Take<wire::ShareMemoryReply>();
  ASSERT_TRUE(shared);
  LoadTo("a", 1);
  EXPECT_TRUE(IsOn(1) && !IsOn(0));
  EXPECT_FALSE(CameFromTheOther(1));
}

TEST_F(ControllerMoves, ProcessesThatBeginToShareOnTheWayMeetWhereTheyArrive) {
  Client second = Connect("token-a");
  const auto block = Malloc(second, 4 * kMiB);
  Evict("a");
  LoadTo("a", 0);
  Hold(&v1::DaemonMessage::has_swap_in);
  LoadTo("a", 1);
  Say(second, wire::ShareMemory{50, block->address});
  ASSERT_TRUE(second.link->Take<wire::ShareMemoryReply>());
  // One has arrived, of the other there is but the source yet.
  answers_ = [&](const v1::DaemonMessage& operation) -> std::optional<absl::Status> {
    if (operation.swap_in().session_id() == second.hello.session_id) return std::nullopt;
    return absl::OkStatus();
  };
  Settle();
  ASSERT_TRUE(IsOn(1));
  answers_ = nullptr;
  Settle();
  EXPECT_EQ(executors_[1].sourced.size(), 2u);
  EXPECT_TRUE(executors_[0].resident.empty());
  for (const int gpu : {0, 1}) {
    EXPECT_FALSE(Last(gpu, &v1::DaemonMessage::has_map_peer).has_map_peer()) << gpu;
  }
  const RequestId request = Acquire("a");
  EXPECT_TRUE(TakeLease(client_) && TakeLease(second));
  EXPECT_TRUE(IsRunning(request));
}

TEST_F(ControllerMoves, SwapInsToTwoGpusAreUnderWayAtTheSameTime) {
  Client other = Connect("token-b");
  Malloc(other, 40 * kMiB);
  Malloc(client_, 36 * kMiB);
  Evict("a");
  Hold(&v1::DaemonMessage::has_swap_in);
  Acquire("a");
  Acquire("b");
  const auto under_way = [this](int gpu) {
    const auto& operations = executors_[gpu].link->operations;
    return !operations.empty() && operations.front().has_swap_in();
  };
  EXPECT_TRUE(under_way(0) && under_way(1));
}

TEST_F(ControllerMoves, WhatOthersHaveOpenIsNotBroughtWithoutItsChanges) {
  Connect("token-a");
  const auto block = Malloc(client_, 4 * kMiB);
  Say(client_, wire::ShareMemory{50, block->address});
  Refuse(&v1::DaemonMessage::has_swap_out, absl::InternalError("no"));
  LoadTo("a", 1);
  EXPECT_FALSE(IsOn(1));
  EXPECT_FALSE(processes_.killed.empty());
}

class StatelessMoves : public ControllerMoves {
 protected:
  StatelessMoves() : ControllerMoves("b") {}
};

TEST_F(StatelessMoves, WhatRequestsHaveChangedIsNotWrittenBack) {
  Serve("b", client_);
  Serve("b", client_);
  LoadTo("b", 1);
  EXPECT_TRUE(IsOn(1) && CameFromTheOther(1) && !IsOn(0));
  std::vector<bool> forgets;
  for (const v1::DaemonMessage& operation : executors_[0].link->log) {
    if (operation.has_swap_out()) forgets.push_back(operation.swap_out().forgets_changes());
  }
  ASSERT_GE(forgets.size(), 2u);
  EXPECT_TRUE(forgets[forgets.size() - 2]) << "it counts as equal to the image";
}

}  // namespace
}  // namespace torpor::server
