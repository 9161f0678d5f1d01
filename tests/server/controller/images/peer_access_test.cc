#include "server/controller/images/peer_access.h"

#include "tests/server/controller/node_world.h"

namespace torpor::server {
namespace {

class PeerAccessTest : public NodeWorld {
 protected:
  PeerAccessTest() {
    Land(primary_, 0);
    Land(secondary_, 1);
  }

  PeerAccess peers_{tables_.executors, tables_.sessions};
  const SessionPtr primary_ = AddSession("pair");
  const SessionPtr secondary_ = AddSession("pair", 1, primary_);
  std::optional<absl::Status> outcome_;
};

TEST_F(PeerAccessTest, ImagesOnDifferentGpusAreSharedBothWays) {
  primary_->memory.device->Allocate(kChunk);
  peers_.Share(primary_, [this](const absl::Status& status) { outcome_ = status; });
  EXPECT_EQ(Operation(1).map_peer().session_id(), primary_->id.value);
  EXPECT_EQ(Operation(1).map_peer().live_size(), 1);
  EXPECT_EQ(Operation(1).map_peer().socket_path(), "/nowhere/peers-0.sock");
  EXPECT_EQ(Operation(0).map_peer().session_id(), secondary_->id.value);
  EXPECT_FALSE(outcome_);
  Settle();
  EXPECT_EQ(outcome_, absl::OkStatus());
  EXPECT_EQ(primary_->image.peer_holders(), std::set{GpuIndex{1}});
}

TEST_F(PeerAccessTest, AnImageThatLeavesIsNotShared) {
  secondary_->image.BeginLeaving();
  peers_.Share(primary_, [this](const absl::Status& status) { outcome_ = status; });
  EXPECT_EQ(outcome_, absl::OkStatus());
  EXPECT_TRUE(IsQuiet(0) && IsQuiet(1));
}

TEST_F(PeerAccessTest, AHolderThatDoesNotLetGoIsKilledAndAwaited) {
  primary_->image.AddPeerHolder(GpuIndex{1});
  bool is_done = false;
  peers_.Withdraw(primary_, PeerAccess::Keep::kNothing, [&] { is_done = true; });
  EXPECT_TRUE(Operation(1).map_peer().live().empty());
  EXPECT_TRUE(primary_->image.peer_holders().empty());
  Answer(1, absl::InternalError("no"));
  EXPECT_EQ(processes_.killed, std::vector{GpuIndex{1}});
  EXPECT_FALSE(is_done);
  KillExecutor(1);
  EXPECT_TRUE(is_done);
}

TEST_F(PeerAccessTest, AGrownImageReachesItsHolders) {
  primary_->image.AddPeerHolder(GpuIndex{1});
  peers_.Update(primary_, [this](const absl::Status& status) { outcome_ = status; });
  Answer(1, absl::ResourceExhaustedError("full"));
  EXPECT_TRUE(outcome_ && absl::IsResourceExhausted(*outcome_));
}

TEST_F(PeerAccessTest, AGpuThatTheImageLeavesForgetsItsPeers) {
  secondary_->image.AddPeerHolder(GpuIndex{0});
  bool is_done = false;
  peers_.ForgetPeersAt(primary_, GpuIndex{0}, [&] { is_done = true; });
  EXPECT_EQ(Operation(0).map_peer().session_id(), secondary_->id.value);
  Answer(0, absl::InternalError("no matter"));
  EXPECT_TRUE(is_done);
  EXPECT_TRUE(secondary_->image.peer_holders().empty());
}

}  // namespace
}  // namespace torpor::server
