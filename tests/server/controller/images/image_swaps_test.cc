#include "server/controller/images/image_swaps.h"

#include "tests/server/controller/node_world.h"

namespace torpor::server {
namespace {

class ImageSwapsTest : public NodeWorld {
 protected:
  ImageSwaps::OnDone Keep() {
    return [this](const OperationResult& result) { result_ = result; };
  }

  int arrivals_ = 0;
  std::optional<OperationResult> result_;
  PeerAccess peers_{tables_.executors, tables_.sessions};
  ImageSwaps swaps_{tables_.executors,
                    tables_.instances,
                    tables_.sessions,
                    peers_,
                    host_.room,
                    telemetry_,
                    loop_,
                    [this] { ++arrivals_; }};
};

TEST_F(ImageSwapsTest, BringsAnImageOnce) {
  const SessionPtr session = AddSession("a");
  swaps_.SwapIn(session, GpuIndex{0}, Keep());
  EXPECT_TRUE(session->image.is_arriving());
  ASSERT_TRUE(Operation(0).has_swap_in());
  EXPECT_FALSE(Operation(0).swap_in().is_whole());
  Answer(0);
  EXPECT_TRUE(result_ && result_->status.ok());
  EXPECT_TRUE(session->image.IsOn(GpuIndex{0}));
  result_.reset();
  swaps_.SwapIn(session, GpuIndex{0}, Keep());
  EXPECT_TRUE(result_ && result_->status.ok());
  EXPECT_TRUE(IsQuiet(0));
}

TEST_F(ImageSwapsTest, ALeaseOnAReplicaBeginsWithTheChanges) {
  const SessionPtr session = AddSession("a");
  Land(session, 1);
  swaps_.SwapIn(session, GpuIndex{0}, Keep());
  EXPECT_TRUE(Operation(1).swap_out().becomes_source()) << "changes there are written back first";
  EXPECT_FALSE(Operation(1).swap_out().drop());
  EXPECT_TRUE(IsQuiet(0));
  Answer(1);
  ASSERT_TRUE(Operation(0).has_swap_in());
  EXPECT_FALSE(Operation(0).swap_in().refreshes());
  Answer(0);
  EXPECT_TRUE(session->image.IsOn(GpuIndex{0}));
  EXPECT_TRUE(session->image.HasReplicaOn(GpuIndex{1}));
  swaps_.EndArrival(*session);
  session->image.NoteLease(LeaseId{1}, /*is_explicit=*/true);
  swaps_.SwapIn(session, GpuIndex{1}, Keep());
  Answer(0);
  EXPECT_TRUE(Operation(1).swap_in().refreshes());
  Answer(1);
  EXPECT_TRUE(session->image.IsOn(GpuIndex{1}));
  EXPECT_TRUE(session->image.HasReplicaOn(GpuIndex{0}));
}

TEST_F(ImageSwapsTest, AReplicaThatCannotBeBroughtUpToDateComesAnew) {
  const SessionPtr session = AddSession("a");
  Land(session, 1);
  swaps_.SwapIn(session, GpuIndex{0}, Keep());
  Settle();
  swaps_.EndArrival(*session);
  swaps_.SwapIn(session, GpuIndex{1}, Keep());
  Answer(0);
  Answer(1, absl::ResourceExhaustedError("in pieces"));
  EXPECT_TRUE(Operation(1).swap_out().drop());
  Answer(1);
  ASSERT_TRUE(Operation(1).has_swap_in());
  EXPECT_FALSE(Operation(1).swap_in().refreshes());
  Answer(1);
  EXPECT_TRUE(session->image.IsOn(GpuIndex{1}));
}

TEST_F(ImageSwapsTest, WhatCannotBeSavedIsNoReplica) {
  const SessionPtr session = AddSession("a");
  Land(session, 1);
  swaps_.SwapIn(session, GpuIndex{0}, Keep());
  Answer(1, absl::InternalError("no"));
  EXPECT_EQ(processes_.killed, std::vector{GpuIndex{1}});
  EXPECT_TRUE(IsQuiet(0)) << "until the executor has gone";
  KillExecutor(1);
  EXPECT_TRUE(Operation(0).has_swap_in());
  EXPECT_TRUE(session->image.replicas().empty());
}

TEST_F(ImageSwapsTest, AFailedSwapInEndsTheArrival) {
  const SessionPtr session = AddSession("a");
  swaps_.SwapIn(session, GpuIndex{0}, Keep());
  Answer(0, absl::ResourceExhaustedError("full"));
  EXPECT_TRUE(absl::IsResourceExhausted(result_->status));
  EXPECT_FALSE(session->image.is_arriving());
  EXPECT_FALSE(session->image.gpu());
  EXPECT_EQ(arrivals_, 1);
}

TEST_F(ImageSwapsTest, ALostSessionIsNotBrought) {
  const SessionPtr session = AddSession("a");
  session->is_lost = true;
  swaps_.SwapIn(session, GpuIndex{0}, Keep());
  EXPECT_TRUE(result_ && result_->status.ok());
  EXPECT_FALSE(session->image.gpu());
}

TEST_F(ImageSwapsTest, AStepIsNotForTheExecutorsSuccessor) {
  const SessionPtr session = AddSession("a");
  StepQueue::Finish finish_earlier;
  session->steps.Add([&](const StepQueue::Finish& finish) { finish_earlier = finish; });
  swaps_.SwapIn(session, GpuIndex{0}, Keep());
  tables_.executors.At(GpuIndex{0}).OnStarting(99);
  finish_earlier();
  EXPECT_TRUE(result_ && result_->is_executor_lost);
}

TEST_F(ImageSwapsTest, AnEvictedImageIsWrittenBackAndLeaves) {
  const SessionPtr session = AddSession("a");
  Land(session, 0);
  session->image.NoteLease(LeaseId{1}, /*is_explicit=*/false);
  swaps_.SwapOut(session, GpuIndex{0}, WriteBackReason::kEviction, Keep());
  EXPECT_TRUE(session->image.is_leaving());
  EXPECT_TRUE(Operation(0).swap_out().drop());
  Answer(0);
  EXPECT_FALSE(session->image.gpu());
  EXPECT_FALSE(session->image.has_changes());
}

TEST_F(ImageSwapsTest, ACheckpointedImageStays) {
  const SessionPtr session = AddSession("a");
  Land(session, 0);
  session->image.NoteLease(LeaseId{1}, /*is_explicit=*/false);
  swaps_.SwapOut(session, GpuIndex{0}, WriteBackReason::kCheckpoint, Keep());
  EXPECT_FALSE(Operation(0).swap_out().drop());
  Answer(0);
  EXPECT_TRUE(session->image.IsOn(GpuIndex{0}));
  EXPECT_FALSE(session->image.unsaved_lease());
}

TEST_F(ImageSwapsTest, AnIdleGpuWritesAPartBackUntilNothingIsLeft) {
  const SessionPtr session = AddSession("a");
  Land(session, 0);
  session->image.NoteLease(LeaseId{1}, /*is_explicit=*/true);
  const Shard shard = tables_.instances.ShardOf(InstanceOf("a").id);
  EXPECT_EQ(swaps_.UnsavedSessionOf(shard, GpuIndex{0}), session);
  swaps_.SwapOut(session, GpuIndex{0}, WriteBackReason::kIdle, Keep());
  EXPECT_GT(Operation(0).swap_out().max_bytes(), 0u);
  Answer(0, absl::OkStatus(), [](auto& done) { done.set_has_more(true); });
  EXPECT_EQ(swaps_.UnsavedSessionOf(shard, GpuIndex{0}), session);
  swaps_.SwapOut(session, GpuIndex{0}, WriteBackReason::kIdle, Keep());
  Answer(0);
  EXPECT_EQ(swaps_.UnsavedSessionOf(shard, GpuIndex{0}), nullptr);
}

TEST_F(ImageSwapsTest, AnImageThatCannotBeWrittenBackEndsItsExecutor) {
  const SessionPtr session = AddSession("a");
  Land(session, 0);
  swaps_.SwapOut(session, GpuIndex{0}, WriteBackReason::kEviction, Keep());
  Answer(0, absl::InternalError("no"));
  EXPECT_EQ(processes_.killed, std::vector{GpuIndex{0}});
  EXPECT_FALSE(session->image.is_leaving());
}

TEST_F(ImageSwapsTest, AStatelessFunctionForgetsWhatRequestsHaveChanged) {
  InstanceOf("a").function->config.is_stateless = true;
  const SessionPtr session = AddSession("a");
  EXPECT_TRUE(swaps_.ForgetsChanges(*session));
  session->image.NoteLease(LeaseId{1}, /*is_explicit=*/false);
  EXPECT_FALSE(swaps_.ForgetsChanges(*session)) << "it has set up its memory";
}

TEST_F(ImageSwapsTest, PeersComeTogetherAndReachEachOther) {
  const SessionPtr primary = AddSession("pair");
  const SessionPtr secondary = AddSession("pair", 1, primary);
  const InstanceLease lease = GiveLease("pair");
  bool is_done = false;
  swaps_.SwapInWithPeers(primary, lease, [&] { is_done = true; });
  EXPECT_TRUE(Operation(0).swap_in().is_whole());
  Answer(0);
  EXPECT_FALSE(is_done);
  Answer(1);
  EXPECT_TRUE(Operation(0).has_map_peer());
  EXPECT_TRUE(Operation(1).has_map_peer());
  Settle();
  EXPECT_TRUE(is_done);
  EXPECT_TRUE(secondary->image.IsOn(GpuIndex{1}));
  EXPECT_EQ(primary->image.peer_holders(), std::set{GpuIndex{1}});
}

}  // namespace
}  // namespace torpor::server
