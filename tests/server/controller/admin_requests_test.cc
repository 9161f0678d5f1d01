#include "server/controller/admin_requests.h"

#include "tests/server/controller/node_world.h"

namespace torpor::server {
namespace {

using Kind = AdminRequest::Kind;

class AdminRequestsTest : public NodeWorld {
 protected:
  void Start(Kind kind, const std::string& function = "a", std::optional<GpuIndex> gpu = {}) {
    outcome_.reset();
    requests_.Start({.kind = kind, .function = function, .gpu = gpu},
                    [this](const absl::Status& status) { outcome_ = status; });
  }
  // A session of a with work on GPU 0 that the host's image lacks.
  void AddChanged() {
    const SessionPtr session = AddSession("a");
    Land(session, 0);
    session->image.NoteLease(LeaseId{1}, /*is_explicit=*/true);
  }

  const std::unique_ptr<scheduler::Scheduler> own_scheduler_ = MakeScheduler();
  scheduler::Scheduler& scheduler_ = *own_scheduler_;
  PeerAccess peers_{tables_.executors, tables_.sessions};
  ImageSwaps swaps_{tables_.executors,
                    tables_.instances,
                    tables_.sessions,
                    peers_,
                    host_.room,
                    telemetry_,
                    loop_,
                    [] {}};
  SessionSaves saves_{tables_.sessions, swaps_, loop_};
  AdminRequests requests_{
      tables_.instances, tables_.sessions, tables_.executors, saves_, scheduler_, events_, loop_};
  std::optional<absl::Status> outcome_;
};

TEST_F(AdminRequestsTest, RefusesWhatCannotBe) {
  Start(Kind::kPin, "c");
  EXPECT_TRUE(absl::IsNotFound(*outcome_));
  Start(Kind::kLoad);
  EXPECT_TRUE(absl::IsFailedPrecondition(*outcome_)) << "no process uses CUDA";
  AddSession("a");
  Start(Kind::kLoad, "a", GpuIndex{5});
  EXPECT_TRUE(absl::IsInvalidArgument(*outcome_));
  AddSession("pair");
  Start(Kind::kLoad, "pair", GpuIndex{0});
  EXPECT_TRUE(absl::IsInvalidArgument(*outcome_)) << "it uses two";
}

TEST_F(AdminRequestsTest, PinsAtOnce) {
  Start(Kind::kPin);
  EXPECT_EQ(outcome_, absl::OkStatus());
  EXPECT_TRUE(events_.Of<scheduler::PinChanged>().at(0).is_pinned);
  Start(Kind::kUnpin);
  EXPECT_FALSE(events_.Of<scheduler::PinChanged>().at(1).is_pinned);
}

TEST_F(AdminRequestsTest, SaysWhyALoadWasRefused) {
  AddSession("a");
  Start(Kind::kLoad);
  EXPECT_FALSE(outcome_ && outcome_->ok());
  requests_.OnLoadRefused({InstanceOf("a").id, scheduler::LoadRefusal::kInUse});
  Start(Kind::kLoad);
  ASSERT_TRUE(outcome_);
  EXPECT_TRUE(absl::IsFailedPrecondition(*outcome_));
  EXPECT_EQ(events_.Of<scheduler::LoadWanted>().size(), 2u);
}

TEST_F(AdminRequestsTest, AnInstanceThatLeavesIsNotAsked) {
  AddSession("a");
  InstanceOf("a").is_leaving = true;
  Start(Kind::kLoad);
  EXPECT_EQ(outcome_, absl::OkStatus()) << "no instance stays";
  EXPECT_TRUE(events_.fed.empty());
}

TEST_F(AdminRequestsTest, AnImageThatIsNowhereIsEvictedAlready) {
  Start(Kind::kEvict);
  EXPECT_EQ(outcome_, absl::OkStatus());
  EXPECT_EQ(events_.Of<scheduler::EvictionWanted>().size(), 1u);
}

TEST_F(AdminRequestsTest, ACheckpointWritesResidentImagesBack) {
  AddChanged();
  Start(Kind::kCheckpoint);
  EXPECT_FALSE(outcome_);
  EXPECT_TRUE(Operation(0).has_swap_out());
  Answer(0);
  EXPECT_EQ(outcome_, absl::OkStatus());
}

TEST_F(AdminRequestsTest, ACheckpointIsAbortedByALoss) {
  AddChanged();
  Start(Kind::kCheckpoint);
  KillExecutor(0);
  EXPECT_TRUE(outcome_ && absl::IsAborted(*outcome_));
}

TEST_F(AdminRequestsTest, WaitsForALeaseAndGivesUp) {
  AddChanged();
  GiveLease("a");
  Start(Kind::kCheckpoint);
  EXPECT_TRUE(IsQuiet(0));
  loop_.Advance(std::chrono::seconds(30));
  EXPECT_TRUE(outcome_ && absl::IsDeadlineExceeded(*outcome_));
}

TEST_F(AdminRequestsTest, BeginsAfterALeaseThatIsEnding) {
  GiveLease("a").is_revoked = true;
  Start(Kind::kPin);
  EXPECT_TRUE(events_.fed.empty());
  InstanceOf("a").lease.reset();
  requests_.Check();
  EXPECT_EQ(outcome_, absl::OkStatus());
}

TEST_F(AdminRequestsTest, ShutdownAnswersAll) {
  GiveLease("a").is_revoked = true;
  Start(Kind::kPin);
  requests_.Shutdown();
  EXPECT_TRUE(outcome_ && absl::IsUnavailable(*outcome_));
}

}  // namespace
}  // namespace torpor::server
