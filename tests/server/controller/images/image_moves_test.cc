#include "server/controller/images/image_moves.h"

#include "tests/server/controller/node_world.h"

namespace torpor::server {
namespace {

class ImageMovesTest : public NodeWorld {
 protected:
  void Move() {
    moves_.Move(
        session_, GpuIndex{0}, GpuIndex{1},
        [this](const OperationResult& result) { arrived_ = result; },
        [this](const OperationResult& result) { left_ = result; });
  }
  void CompleteArrival() {
    swaps_.EndArrival(*session_);
    loop_.RunAll();
  }

  PeerAccess peers_{tables_.executors, tables_.sessions};
  ImageSwaps swaps_{tables_.executors,
                    tables_.instances,
                    tables_.sessions,
                    peers_,
                    host_.room,
                    telemetry_,
                    loop_,
                    [] {}};
  ImageMoves moves_{tables_.executors, swaps_};
  const SessionPtr session_ = AddSession("a");
  std::optional<OperationResult> arrived_;
  std::optional<OperationResult> left_;
};

TEST_F(ImageMovesTest, CopiesFromTheSourceAndDropsItAfterTheArrival) {
  Land(session_, 0);
  Move();
  EXPECT_TRUE(Operation(0).swap_out().becomes_source());
  EXPECT_FALSE(Operation(0).swap_out().drop());
  Answer(0);
  EXPECT_TRUE(session_->image.HasReplicaOn(GpuIndex{0}));
  EXPECT_EQ(Operation(1).swap_in().source_socket_path(), "/nowhere/peers-0.sock");
  Answer(1);
  EXPECT_TRUE(arrived_ && arrived_->status.ok());
  EXPECT_TRUE(IsQuiet(1)) << "copies go on";
  CompleteArrival();
  EXPECT_TRUE(Operation(1).has_release_source());
  Answer(1);
  EXPECT_TRUE(Operation(0).swap_out().drop());
  EXPECT_FALSE(left_);
  Answer(0);
  EXPECT_TRUE(left_ && left_->status.ok());
  EXPECT_TRUE(session_->image.IsOn(GpuIndex{1}));
  EXPECT_TRUE(session_->image.replicas().empty());
  EXPECT_FALSE(session_->image.source());
}

TEST_F(ImageMovesTest, ACopyStaysWhereItWas) {
  Land(session_, 0);
  moves_.Copy(session_, GpuIndex{0}, GpuIndex{1},
              [this](const OperationResult& result) { arrived_ = result; });
  Answer(0);
  EXPECT_EQ(Operation(1).swap_in().source_socket_path(), "/nowhere/peers-0.sock");
  Answer(1);
  CompleteArrival();
  EXPECT_TRUE(Operation(1).has_release_source());
  Answer(1);
  EXPECT_TRUE(IsQuiet(0));
  EXPECT_TRUE(session_->image.HasReplicaOn(GpuIndex{0}));
  EXPECT_TRUE(session_->image.IsOn(GpuIndex{1}));
}

TEST_F(ImageMovesTest, AReplicaOnTheWayToAnotherGpuIsDroppedAfterTheLastCopy) {
  Land(session_, 0);
  moves_.Copy(session_, GpuIndex{0}, GpuIndex{1},
              [this](const OperationResult& result) { arrived_ = result; });
  Answer(0);
  Answer(1);
  swaps_.SwapOut(session_, GpuIndex{0}, WriteBackReason::kEviction,
                 [this](const OperationResult& result) { left_ = result; });
  EXPECT_TRUE(IsQuiet(0)) << "GPU 1 still copies from there";
  CompleteArrival();
  Settle();
  EXPECT_TRUE(left_ && left_->status.ok());
  EXPECT_TRUE(session_->image.replicas().empty());
}

TEST_F(ImageMovesTest, ASourceThatIsBehindIsBroughtUpToDateFirst) {
  Land(session_, 1);
  swaps_.SwapIn(session_, GpuIndex{0}, [](const OperationResult&) {});
  Settle();
  CompleteArrival();
  session_->image.NoteLease(LeaseId{1}, /*is_explicit=*/true);
  ASSERT_TRUE(session_->image.IsReplicaBehind(GpuIndex{1}));
  // The image leaves the GPU where it is current; then only the older copy is left.
  swaps_.SwapOut(session_, GpuIndex{0}, WriteBackReason::kEviction, [](const OperationResult&) {});
  Settle();
  moves_.Copy(session_, GpuIndex{1}, GpuIndex{0}, [](const OperationResult&) {});
  ASSERT_TRUE(Operation(1).has_swap_in());
  EXPECT_TRUE(Operation(1).swap_in().refreshes());
  EXPECT_TRUE(IsQuiet(0));
  Answer(1);
  EXPECT_TRUE(Operation(1).swap_out().becomes_source());
  Answer(1);
  EXPECT_EQ(Operation(0).swap_in().source_socket_path(), "/nowhere/peers-1.sock");
}

TEST_F(ImageMovesTest, WhatOthersHaveOpenGoesByTheHost) {
  Land(session_, 0);
  session_->shared.Share(0);
  session_->shared.Open(0, SessionId{99});
  Move();
  EXPECT_TRUE(Operation(0).swap_out().drop());
  Answer(0);
  EXPECT_TRUE(Operation(1).swap_in().source_socket_path().empty());
  Settle();
  CompleteArrival();
  Settle();
  EXPECT_TRUE(left_ && left_->status.ok());
}

TEST_F(ImageMovesTest, AFailedSwapInLeavesTheSourceToo) {
  Land(session_, 0);
  Move();
  Answer(0);
  Answer(1, absl::ResourceExhaustedError("full"));
  EXPECT_TRUE(arrived_ && absl::IsResourceExhausted(arrived_->status));
  EXPECT_TRUE(Operation(0).swap_out().drop());
  Answer(0);
  EXPECT_TRUE(left_ && left_->status.ok());
  EXPECT_FALSE(session_->image.gpu());
  EXPECT_TRUE(session_->image.replicas().empty());
}

TEST_F(ImageMovesTest, AnExecutorThatKeepsItsCopyIsKilled) {
  Land(session_, 0);
  Move();
  Answer(0);
  Answer(1);
  CompleteArrival();
  Answer(1, absl::InternalError("no"));
  EXPECT_EQ(processes_.killed, std::vector{GpuIndex{1}});
  EXPECT_FALSE(left_);
}

}  // namespace
}  // namespace torpor::server
