#include "server/controller/lease_service.h"

#include "server/controller/model/cuda_errors.h"
#include "tests/server/controller/node_world.h"

namespace torpor::server {
namespace {

class LeasesTest : public NodeWorld {
 protected:
  scheduler::Grant Grant(RequestId request = RequestId{1}) {
    return {.request = request,
            .instance = InstanceOf("a").id,
            .gpu = GpuIndex{0},
            .secondary_gpus = {}};
  }
  // Begins a lease for the session and takes it up to the client's acknowledgement.
  LeaseId Take(const SessionPtr& session, bool is_explicit = true) {
    leases_.Begin(Grant(), is_explicit, {session});
    Settle();
    const auto grant = LinkOf(session).Take<wire::LeaseGrant>();
    if (!grant) return {};
    leases_.Acknowledge(session, {grant->lease_id});
    return LeaseId{grant->lease_id};
  }
  // After so long, not sooner, the session is closed for the lease that it keeps.
  void ExpectClosedAfter(Duration patience, bool is_overdue) {
    loop_.Advance(patience - std::chrono::milliseconds(1));
    EXPECT_TRUE(closed_.empty());
    loop_.Advance(std::chrono::milliseconds(1));
    EXPECT_EQ(closed_.size(), 1u);
    EXPECT_EQ(session_->is_overdue, is_overdue);
  }
  std::optional<InstanceLease>& lease() { return InstanceOf("a").lease; }

  int taken_ = 0;
  std::vector<InstanceLease> ended_;
  std::vector<std::string> closed_;
  PeerAccess peers_{tables_.executors, tables_.sessions};
  ImageSwaps swaps_{tables_.executors,
                    tables_.instances,
                    tables_.sessions,
                    peers_,
                    host_.room,
                    telemetry_,
                    loop_,
                    [] {}};
  ImplicitRequests implicit_{tables_.sessions, events_};
  InstanceHealth health_{tables_.instances, tables_.sessions, events_, loop_};
  LeaseService leases_{
      tables_.instances,
      tables_.sessions,
      tables_.executors,
      seats_,
      health_,
      swaps_,
      implicit_,
      events_,
      telemetry_,
      loop_,
      {.taken = [this](FunctionInstance&) { ++taken_; },
       .ended = [this](const InstanceLease& lease) { ended_.push_back(lease); },
       .close = [this](const SessionPtr&, const std::string& why) { closed_.push_back(why); }}};
  const SessionPtr session_ = AddSession("a");
};

TEST_F(LeasesTest, ASessionGetsItsLeaseOnceItsImageIsThere) {
  leases_.Begin(Grant(), /*is_explicit=*/true, {session_});
  EXPECT_TRUE(Operation(0).has_swap_in());
  Answer(0);
  EXPECT_TRUE(Operation(0).has_begin_lease());
  EXPECT_FALSE(LinkOf(session_).Take<wire::LeaseGrant>());
  Answer(0);
  const auto grant = LinkOf(session_).Take<wire::LeaseGrant>();
  ASSERT_TRUE(grant);
  EXPECT_TRUE(grant->is_explicit);
  EXPECT_EQ(taken_, 0);
  leases_.Acknowledge(session_, {grant->lease_id});
  EXPECT_EQ(taken_, 1);
  EXPECT_TRUE(session_->image.has_changes());
}

TEST_F(LeasesTest, ARevokedLeaseEndsWhenItIsGivenBack) {
  const LeaseId id = Take(session_);
  leases_.Revoke(InstanceOf("a"));
  EXPECT_TRUE(LinkOf(session_).Take<wire::LeaseRevoke>());
  leases_.Return(session_, {id.value});
  EXPECT_TRUE(Operation(0).has_end_lease());
  EXPECT_TRUE(ended_.empty());
  loop_.Advance(std::chrono::seconds(2));
  Answer(0);
  EXPECT_EQ(ended_.size(), 1u);
  EXPECT_EQ(events_.Of<scheduler::LeaseEnded>().size(), 1u);
  EXPECT_FALSE(lease());
  EXPECT_EQ(leases_.BusySecondsOf(GpuIndex{0}), 2);
}

TEST_F(LeasesTest, WhatAProgramHasSetUpIsSavedAtTheEnd) {
  const LeaseId id = Take(session_, /*is_explicit=*/false);
  leases_.Return(session_, {id.value});
  Answer(0);
  EXPECT_TRUE(Operation(0).has_swap_out());
  EXPECT_FALSE(Operation(0).swap_out().drop());
}

TEST_F(LeasesTest, ALeaseWithoutParticipantsStandsUntilItIsRevoked) {
  leases_.Begin(Grant(), /*is_explicit=*/true, {});
  EXPECT_TRUE(lease());
  leases_.Revoke(InstanceOf("a"));
  EXPECT_FALSE(lease());
  EXPECT_EQ(ended_.at(0).requests, std::set{RequestId{1}});
}

TEST_F(LeasesTest, AProgramOutsideOfRequestsAsksTheScheduler) {
  leases_.Request(session_);
  EXPECT_EQ(events_.Of<scheduler::RequestArrived>().size(), 1u);
  leases_.Request(session_);
  EXPECT_EQ(events_.Of<scheduler::RequestArrived>().size(), 1u) << "it waits already";
}

TEST_F(LeasesTest, ALateProcessTakesPartInTheLeaseOfARequest) {
  Take(session_);
  const SessionPtr late = AddSession("a");
  leases_.Request(late);
  EXPECT_TRUE(events_.Of<scheduler::RequestArrived>().empty());
  Settle();
  EXPECT_TRUE(LinkOf(late).Take<wire::LeaseGrant>());
  EXPECT_EQ(lease()->participants.size(), 2u);
}

TEST_F(LeasesTest, ASessionWhoseImageCannotComeIsDenied) {
  leases_.Begin(Grant(), /*is_explicit=*/true, {session_});
  Answer(0, absl::ResourceExhaustedError("full"));
  const auto lost = LinkOf(session_).Take<wire::LeaseLost>();
  ASSERT_TRUE(lost);
  EXPECT_TRUE(lost->sticky);
  EXPECT_TRUE(session_->is_lost);
  EXPECT_FALSE(lease());
}

TEST_F(LeasesTest, ASessionThatDoesNotTakeItsLeaseIsClosed) {
  leases_.Begin(Grant(), /*is_explicit=*/true, {session_});
  Settle();
  loop_.Advance(std::chrono::seconds(31));
  EXPECT_EQ(closed_.size(), 1u);
}

TEST_F(LeasesTest, ARevokedSessionHasItsRequestsRunLimit) {
  InstanceOf("a").function->config.run_limit = std::chrono::seconds(60);
  InstanceOf("a").function->config.upstream_timeout = std::chrono::minutes(10);
  Take(session_);
  loop_.Advance(std::chrono::seconds(1));
  leases_.Revoke(InstanceOf("a"));
  ExpectClosedAfter(std::chrono::milliseconds(59'500), true);
}

TEST_F(LeasesTest, ASessionWithoutARequestGivesItsLeaseBackSooner) {
  InstanceOf("a").function->config.run_limit = std::chrono::seconds(60);
  Take(session_);
  lease()->requests.clear();
  leases_.Revoke(InstanceOf("a"));
  ExpectClosedAfter(std::chrono::seconds(30), false);
}

TEST_F(LeasesTest, ALeaseRevokedAtItsLimitComesBackInHalfASecond) {
  InstanceOf("a").function->config.run_limit = std::chrono::seconds(2);
  Take(session_);
  loop_.Advance(std::chrono::seconds(2));
  leases_.Revoke(InstanceOf("a"));
  ExpectClosedAfter(std::chrono::milliseconds(500), true);
}

TEST_F(LeasesTest, WithoutARunLimitTheUpstreamTimeoutHolds) {
  InstanceOf("a").function->config.upstream_timeout = std::chrono::seconds(3);
  Take(session_);
  leases_.Revoke(InstanceOf("a"));
  ExpectClosedAfter(std::chrono::milliseconds(3'500), true);
}

TEST_F(LeasesTest, AProgramWithoutARequestHasNoLimit) {
  InstanceOf("a").function->config.run_limit = std::chrono::seconds(2);
  Take(session_, /*is_explicit=*/false);
  loop_.Advance(std::chrono::seconds(10));
  leases_.Revoke(InstanceOf("a"));
  ExpectClosedAfter(std::chrono::seconds(30), false);
}

TEST_F(LeasesTest, AfterALossALaterRequestMayGoOn) {
  session_->image.NoteSaved({});  // it had been set up and saved before
  Take(session_);
  const LeaseService::Lost lost = leases_.Lose(InstanceOf("a"));
  EXPECT_EQ(lost.harmed, std::vector{session_->id});
  EXPECT_FALSE(lost.is_own_fault);
  const auto told = LinkOf(session_).Take<wire::LeaseLost>();
  ASSERT_TRUE(told);
  EXPECT_FALSE(told->sticky);
  EXPECT_FALSE(lease());
}

TEST_F(LeasesTest, WhatWasNeverSavedIsLostForGood) {
  Take(session_);
  leases_.Lose(InstanceOf("a"));
  EXPECT_TRUE(LinkOf(session_).Take<wire::LeaseLost>()->sticky);
  EXPECT_TRUE(session_->is_lost);
}

TEST_F(LeasesTest, WhatMustSurviveIsLostOnlyWithoutAReplay) {
  session_->image.NoteLease(LeaseId{1}, /*is_explicit=*/true);
  EXPECT_FALSE(leases_.LosesState(*session_)) << "by its operator's word";
  InstanceOf("a").function->config.durability = Durability::kEviction;
  EXPECT_TRUE(leases_.MayReplay(*session_));
  EXPECT_FALSE(leases_.LosesState(*session_));
  session_->memory.files->checkpoint().NoteOverwritten();
  EXPECT_FALSE(leases_.MayReplay(*session_));
  EXPECT_TRUE(leases_.LosesState(*session_));
  session_->memory.files->checkpoint().Commit(3);
  EXPECT_TRUE(leases_.MayReplay(*session_));
  InstanceOf("a").function->config.is_stateless = true;
  EXPECT_FALSE(leases_.MayReplay(*session_));
}

TEST_F(LeasesTest, ASessionToBeReplayedIsNotFailed) {
  InstanceOf("a").function->config.durability = Durability::kEviction;
  Take(session_);
  const LeaseService::Lost lost = leases_.Lose(InstanceOf("a"));
  EXPECT_TRUE(lost.is_replayed);
  const auto told = LinkOf(session_).Take<wire::LeaseLost>();
  ASSERT_TRUE(told);
  EXPECT_TRUE(told->replays);
  EXPECT_FALSE(told->sticky);
  EXPECT_TRUE(session_->image.is_replay_due());
}

}  // namespace
}  // namespace torpor::server
