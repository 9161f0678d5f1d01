#include "client_shim/core/commands/client_lease.h"

#include <gtest/gtest.h>

namespace torpor::shim {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kIdle{20};
constexpr cudaError_t kError = cudaErrorIllegalAddress;

class ClientLeaseTest : public ::testing::Test {
 protected:
  LeaseMoment At(milliseconds time, std::uint64_t uses = 0) const { return {start_ + time, uses}; }
  LeaseMoment Now(std::uint64_t uses = 0) const { return At(milliseconds(0), uses); }
  void Grant(std::uint64_t id, bool is_explicit, std::uint64_t uses = 0) {
    last_ = lease_.Grant(id, is_explicit, Now(uses));
  }
  // A call's error.
  cudaError_t Fail(bool tells_program, bool is_quiet = false) {
    last_ = {};
    return lease_.FailCall(tells_program, is_quiet, Now(), last_);
  }

  const ClientLease::Time start_ = ClientLease::Time() + std::chrono::hours(1);
  ClientLease lease_{kIdle};
  LeaseActions last_;  // of the event before
};

TEST_F(ClientLeaseTest, ACallRequestsALeaseOnce) {
  EXPECT_TRUE(lease_.IsDrained());
  EXPECT_TRUE(lease_.Need().requests);
  EXPECT_EQ(lease_.state(), ClientLease::State::kRequested);
  EXPECT_FALSE(lease_.Need().requests);
  EXPECT_TRUE(lease_.IsDrained());
}

TEST_F(ClientLeaseTest, AGrantWakesCallsAndIsServed) {
  lease_.Need();
  Grant(7, false);
  EXPECT_TRUE(last_.wakes);
  EXPECT_EQ(lease_.id(), 7u);
  EXPECT_TRUE(lease_.HasExecutor());
  EXPECT_FALSE(lease_.IsDrained());
}

TEST_F(ClientLeaseTest, ARevokedLeaseIsDrainedAndReturned) {
  Grant(7, true);
  EXPECT_TRUE(lease_.Revoke(7, Now()).begins_return);
  EXPECT_EQ(lease_.state(), ClientLease::State::kReturning);
  EXPECT_FALSE(lease_.Revoke(7, Now()).begins_return) << "once";
  const LeaseActions drained = lease_.NoteDrained(Now());
  EXPECT_EQ(drained.returned, 7u);
  EXPECT_TRUE(drained.ends_request);
  EXPECT_TRUE(drained.wakes);
  EXPECT_EQ(lease_.state(), ClientLease::State::kNone);
  EXPECT_EQ(lease_.id(), 0u);
}

TEST_F(ClientLeaseTest, ARevokeOfAnEarlierLeaseIsIgnored) {
  Grant(7, false);
  const LeaseActions actions = lease_.Revoke(6, Now());
  EXPECT_FALSE(actions.begins_return);
  EXPECT_EQ(actions.returned, 0u);
  EXPECT_EQ(lease_.state(), ClientLease::State::kHeld);
}

TEST_F(ClientLeaseTest, AnIdleImplicitLeaseIsReturned) {
  Grant(7, false);
  ASSERT_EQ(lease_.NextIdleCheck(start_), start_ + kIdle);
  EXPECT_FALSE(lease_.CheckIdle(false, At(kIdle / 2)).begins_return) << "too early";
  EXPECT_FALSE(lease_.CheckIdle(false, At(kIdle, 1)).begins_return) << "a command came";
  EXPECT_FALSE(lease_.CheckIdle(true, At(2 * kIdle, 1)).begins_return) << "a reply is due";
  EXPECT_TRUE(lease_.CheckIdle(false, At(3 * kIdle, 1)).begins_return);
}

TEST_F(ClientLeaseTest, AnExplicitLeaseIsNeverIdle) {
  Grant(7, true);
  EXPECT_EQ(lease_.NextIdleCheck(start_), std::nullopt);
  EXPECT_FALSE(lease_.CheckIdle(false, At(10 * kIdle)).begins_return);
}

TEST_F(ClientLeaseTest, AMissedIdleCheckIsDueNow) {
  Grant(7, false);
  EXPECT_EQ(lease_.NextIdleCheck(start_ + 5 * kIdle), start_ + 5 * kIdle);
}

TEST_F(ClientLeaseTest, ALostExplicitLeaseFailsCallsUntilTheDaemonEndsIt) {
  Grant(7, true);
  const LeaseActions lost = lease_.ExecutorLost(kError, false, Now());
  EXPECT_TRUE(lost.drops_work);
  EXPECT_TRUE(lost.wakes);
  EXPECT_EQ(lost.returned, 0u);
  EXPECT_EQ(Fail(true), kError);
  lease_.NoteLossByDaemon(kError, Now());
  EXPECT_EQ(Fail(true), kError);
  EXPECT_EQ(lease_.Revoke(7, Now()).returned, 0u) << "the daemon knows";
  EXPECT_EQ(lease_.state(), ClientLease::State::kNone);
}

TEST_F(ClientLeaseTest, ALostExplicitLeaseEndsWithoutADaemonWhenTheProgramKnows) {
  Grant(7, true);
  EXPECT_FALSE(lease_.NoteDaemonGone(Now()).ends_request) << "an executor serves the lease";
  lease_.ExecutorLost(kError, false, Now());
  EXPECT_TRUE(lease_.NoteDaemonGone(Now()).ends_request);
  EXPECT_EQ(lease_.state(), ClientLease::State::kLost);
  EXPECT_EQ(Fail(true), kError);
  EXPECT_EQ(lease_.state(), ClientLease::State::kNone);
}

TEST_F(ClientLeaseTest, ALostExplicitLeaseEndsAtOnceWithoutADaemonIfTheProgramKnows) {
  Grant(7, true);
  lease_.ExecutorLost(kError, /*program_told=*/true, Now());
  const LeaseActions actions = lease_.NoteDaemonGone(Now());
  EXPECT_TRUE(actions.ends_request);
  EXPECT_TRUE(actions.wakes);
  EXPECT_EQ(lease_.state(), ClientLease::State::kNone);
}

TEST_F(ClientLeaseTest, ALostImplicitLeaseEndsWhenProgramAndDaemonKnow) {
  Grant(7, false);
  lease_.ExecutorLost(kError, false, Now());
  lease_.NoteLossByDaemon(kError, Now());
  EXPECT_EQ(Fail(false), kError) << "an asynchronous call does not tell";
  EXPECT_EQ(lease_.state(), ClientLease::State::kLost);
  EXPECT_EQ(Fail(true), kError);
  EXPECT_EQ(lease_.state(), ClientLease::State::kNone);
  EXPECT_TRUE(last_.wakes);
}

TEST_F(ClientLeaseTest, AQuietCallDoesNotTellTheProgram) {
  Grant(7, false);
  lease_.ExecutorLost(kError, false, Now());
  lease_.NoteLossByDaemon(kError, Now());
  EXPECT_EQ(Fail(true, /*is_quiet=*/true), kError);
  EXPECT_EQ(lease_.state(), ClientLease::State::kLost);
  LeaseActions actions;
  EXPECT_EQ(lease_.TakeLoss(Now(), actions), kError);
  EXPECT_EQ(lease_.TakeLoss(Now(), actions), cudaSuccess);
  EXPECT_EQ(lease_.state(), ClientLease::State::kNone);
}

TEST_F(ClientLeaseTest, ALossIsTakenOnceFromAnExplicitLease) {
  Grant(7, true);
  lease_.ExecutorLost(kError, false, Now());
  LeaseActions actions;
  EXPECT_EQ(lease_.TakeLoss(Now(), actions), kError);
  EXPECT_EQ(lease_.TakeLoss(Now(), actions), cudaSuccess);
  EXPECT_EQ(lease_.state(), ClientLease::State::kLost);
}

TEST_F(ClientLeaseTest, ALossThatTheDaemonDoesNotKnowOfIsToldWhenIdle) {
  Grant(7, false);
  lease_.ExecutorLost(kError, /*program_told=*/true, Now());
  const LeaseActions told = lease_.CheckIdle(false, At(kIdle));
  EXPECT_EQ(told.returned, 7u);
  EXPECT_EQ(lease_.state(), ClientLease::State::kNone) << "both know";
}

TEST_F(ClientLeaseTest, ALossWhileReturningEndsTheLease) {
  Grant(7, false);
  lease_.Revoke(7, Now());
  const LeaseActions lost = lease_.ExecutorLost(kError, true, Now());
  EXPECT_TRUE(lost.drops_work);
  EXPECT_EQ(lost.returned, 7u);
  EXPECT_EQ(lease_.state(), ClientLease::State::kNone);
}

TEST_F(ClientLeaseTest, ALossWhileReturningIsNotReturnedToADaemonThatKnows) {
  Grant(7, false);
  lease_.Revoke(7, Now());
  lease_.NoteLossByDaemon(kError, Now());
  EXPECT_EQ(lease_.ExecutorLost(kError, true, Now()).returned, 0u);
}

TEST_F(ClientLeaseTest, ALossThatNoCallToldPassesToTheNextLease) {
  Grant(7, true);
  lease_.ExecutorLost(kError, false, Now(3));
  Grant(8, true, 3);
  EXPECT_EQ(last_.untold, kError);
  EXPECT_EQ(lease_.state(), ClientLease::State::kHeld);
}

TEST_F(ClientLeaseTest, ALossBehindTheLastAnswerIsNone) {
  Grant(7, true);
  lease_.NoteAnswer(3);
  lease_.ExecutorLost(kError, false, Now(3));
  Grant(8, true, 3);
  EXPECT_EQ(last_.untold, cudaSuccess);
}

TEST_F(ClientLeaseTest, ALossThatACallToldDoesNotPassOn) {
  Grant(7, true);
  lease_.ExecutorLost(kError, false, Now(3));
  Fail(false);
  Grant(8, true, 3);
  EXPECT_EQ(last_.untold, cudaSuccess);
}

TEST_F(ClientLeaseTest, AnUnreachableExecutorGivesTheLeaseBackAndFailsCalls) {
  lease_.Need();
  const LeaseActions actions = lease_.GrantUnreachable(7, true, Now());
  EXPECT_EQ(actions.returned, 7u);
  EXPECT_TRUE(actions.wakes);
  EXPECT_EQ(lease_.state(), ClientLease::State::kLost);
  EXPECT_EQ(Fail(true), cudaErrorDevicesUnavailable);
  EXPECT_EQ(lease_.Revoke(7, Now()).returned, 0u);
}

TEST_F(ClientLeaseTest, ALostSessionAbandonsItsWork) {
  Grant(7, true);
  lease_.Suspend(Now());
  const LeaseActions actions = lease_.Abandon(Now());
  EXPECT_TRUE(actions.drops_work);
  EXPECT_TRUE(actions.ends_request);
  EXPECT_TRUE(actions.wakes);
  EXPECT_EQ(lease_.state(), ClientLease::State::kNone);
  lease_.Need();
  EXPECT_TRUE(lease_.Abandon(Now()).drops_work);
  EXPECT_EQ(lease_.state(), ClientLease::State::kRequested);
}

TEST_F(ClientLeaseTest, TheRecentShareCountsHeldTime) {
  EXPECT_EQ(lease_.RecentShare(start_), 0);
  Grant(7, true);
  EXPECT_DOUBLE_EQ(lease_.RecentShare(start_ + milliseconds(500)), 0.5);
  lease_.Revoke(7, At(milliseconds(500)));
  lease_.NoteDrained(At(milliseconds(500)));
  EXPECT_DOUBLE_EQ(lease_.RecentShare(start_ + milliseconds(1000)), 0.5);
}

}  // namespace
}  // namespace torpor::shim
