#include "server/router/request_failure.h"

#include <gtest/gtest.h>

namespace torpor::server {
namespace {

using Cause = RequestFailure::Cause;

class RequestFailureTest : public testing::Test {
 protected:
  RequestFailureTest() { function_.name = "f"; }

  int reported_ = 0;
  RequestFailure failure_{[this] { ++reported_; }};
  FunctionConfig function_;
  RouterConfig config_;
};

TEST_F(RequestFailureTest, TheFirstCauseCounts) {
  EXPECT_FALSE(failure_);
  failure_.Set(Cause::kUpstreamDown, "refused");
  failure_.Set(Cause::kClientGone, "gone");
  EXPECT_EQ(failure_.cause(), Cause::kUpstreamDown);
  EXPECT_EQ(failure_.detail(), "refused");
  EXPECT_EQ(reported_, 1);
}

TEST_F(RequestFailureTest, AfterClearAnotherCauseCounts) {
  failure_.Set(Cause::kUpstreamBroken, "closed");
  failure_.Clear();
  EXPECT_FALSE(failure_);
  EXPECT_EQ(failure_.detail(), "");
  failure_.Set(Cause::kUpstreamDown, "refused");
  EXPECT_EQ(failure_.cause(), Cause::kUpstreamDown);
  EXPECT_EQ(reported_, 2);
}

TEST_F(RequestFailureTest, ARefusedLeaseHasAnAnswerByItsReason) {
  const auto answer = [this](const absl::Status& reason) {
    RequestFailure failure([] {});
    failure.SetNotGranted(reason);
    return failure.ToRefusal(function_, config_);
  };
  EXPECT_EQ(answer(absl::NotFoundError("x")).status, 404u);
  EXPECT_EQ(answer(absl::DeadlineExceededError("x")).reason, "queue_timeout");
  EXPECT_EQ(answer(absl::ResourceExhaustedError("x")).status, 429u);
  EXPECT_EQ(answer(absl::OutOfRangeError("x")).retry_after_seconds, 0);
  EXPECT_EQ(answer(absl::UnavailableError("x")).retry_after_seconds, kRetrySoonSeconds);
}

TEST_F(RequestFailureTest, AClientsBodyIsTheClientsFault) {
  failure_.Set(Cause::kClientBodyTooLarge, "too large");
  EXPECT_EQ(failure_.ToRefusal(function_, config_).status, 413u);
  EXPECT_EQ(failure_.OutcomeOf(413), RequestOutcome::kRejected);
  EXPECT_EQ(failure_.EndingOf(false, false), scheduler::Ending::kCancelled);
}

TEST_F(RequestFailureTest, ABodyWithoutRoomMayBeSentLater) {
  failure_.Set(Cause::kNoRoomForBody, "bodies take 5 of spool_limit's 5 bytes");
  const Refusal refusal = failure_.ToRefusal(function_, config_);
  EXPECT_EQ(refusal.status, 503u);
  EXPECT_EQ(refusal.reason, "spool_full");
  EXPECT_EQ(refusal.retry_after_seconds, kRetrySoonSeconds);
  EXPECT_EQ(failure_.OutcomeOf(503), RequestOutcome::kRejected);
  EXPECT_EQ(failure_.EndingOf(false, false), scheduler::Ending::kCancelled);
}

TEST_F(RequestFailureTest, WithoutFailureTheAnswerDecides) {
  EXPECT_EQ(failure_.OutcomeOf(200), RequestOutcome::kOk);
  EXPECT_EQ(failure_.OutcomeOf(500), RequestOutcome::kUpstreamError);
  EXPECT_EQ(failure_.EndingOf(true, false), scheduler::Ending::kAnswered);
  EXPECT_EQ(failure_.EndingOf(true, true), scheduler::Ending::kFailed);
  EXPECT_EQ(failure_.EndingOf(false, false), scheduler::Ending::kCancelled);
}

TEST_F(RequestFailureTest, ALostLeaseIsLost) {
  failure_.Set(Cause::kLeaseLost, "its executor died");
  EXPECT_EQ(failure_.OutcomeOf(0), RequestOutcome::kLost);
  EXPECT_EQ(failure_.EndingOf(false, false), scheduler::Ending::kLost);
  EXPECT_FALSE(failure_.IsClientAway());
}

}  // namespace
}  // namespace torpor::server
