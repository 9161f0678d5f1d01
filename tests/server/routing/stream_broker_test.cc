#include "server/routing/stream_broker.h"

#include <gtest/gtest.h>

#include <optional>

#include "server/broker/broker_messages.h"
#include "tests/server/routing/manual_clock.h"
#include "tests/server/routing/recording_link.h"

namespace torpor::server {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class StreamBrokerTest : public testing::Test {
 protected:
  // What became of a request.
  struct Outcome {
    std::optional<absl::StatusOr<RequestGrant>> grant;
    std::optional<absl::Status> lost;
    int confirmed = 0;
  };

  RequestId Ask(Outcome& outcome, const std::string& name = "r") {
    const TimePoint now = clock_.Now();
    return broker_.Acquire(
        {.function = "f", .id = name, .give_up = now + seconds(30), .arrival = now},
        [&outcome](absl::StatusOr<RequestGrant> grant) { outcome.grant = std::move(grant); },
        [&outcome](absl::Status lost) { outcome.lost = std::move(lost); });
  }
  void Confirm(RequestId request, Outcome& outcome) {
    broker_.ConfirmLease(request, [&outcome] { ++outcome.confirmed; });
  }

  // A stream that torpord has welcomed.
  std::shared_ptr<RecordingTorpordLink> Attach() {
    auto link = std::make_shared<RecordingTorpordLink>();
    broker_.Attach(link);
    EXPECT_TRUE(link->sent.at(0).has_holding());
    return link;
  }
  void Grant(RequestId request, std::uint64_t lease) {
    RequestGrant grant;
    grant.lease = LeaseId{lease};
    grant.instance = "i";
    broker_.OnMessage(ToMessage(request.value, grant));
  }

  void Lose(RequestId request, std::uint64_t lease) {
    v1::TorpordMessage::Lost lost;
    lost.set_request_id(request.value);
    lost.set_lease_id(lease);
    lost.set_message("gone");
    broker_.OnMessage(lost);
  }

  ManualClock clock_;
  StreamBroker broker_{clock_};
};

TEST_F(StreamBrokerTest, ARequestIsAskedGrantedAndReleased) {
  const auto link = Attach();
  Outcome outcome;
  const RequestId request = Ask(outcome, "name");
  ASSERT_EQ(link->sent.size(), 2u);
  EXPECT_EQ(link->sent[1].acquire().request_id(), request.value);
  EXPECT_EQ(link->sent[1].acquire().caller_id(), "name");
  EXPECT_FALSE(outcome.grant);
  broker_.OnMessage(ToMessage(request.value, RequestGrant{.request = {},
                                                          .lease = LeaseId{7},
                                                          .instance = "a",
                                                          .upstream = "host:1",
                                                          .has_siblings = true,
                                                          .gpu = GpuIndex{3},
                                                          .source = SwapSource::kPeer,
                                                          .queue = milliseconds(2),
                                                          .swap = milliseconds(5)}));
  ASSERT_TRUE(outcome.grant && outcome.grant->ok());
  EXPECT_EQ((*outcome.grant)->instance, "a");
  EXPECT_EQ((*outcome.grant)->upstream, "host:1");
  EXPECT_TRUE((*outcome.grant)->has_siblings);
  EXPECT_EQ((*outcome.grant)->gpu, GpuIndex{3});
  EXPECT_EQ((*outcome.grant)->source, SwapSource::kPeer);
  EXPECT_EQ((*outcome.grant)->queue, milliseconds(2));
  EXPECT_EQ((*outcome.grant)->swap, milliseconds(5));
  broker_.Release(request, scheduler::Ending::kAnswered);
  ASSERT_EQ(link->sent.size(), 3u);
  EXPECT_EQ(EndingOf(link->sent[2].release()), scheduler::Ending::kAnswered);
  EXPECT_EQ(link->sent[2].release().lease_id(), 7u);
}

TEST_F(StreamBrokerTest, ARefusalKeepsItsKind) {
  Attach();
  Outcome outcome;
  const RequestId request = Ask(outcome);
  broker_.OnMessage(ToMessage(request.value, absl::ResourceExhaustedError("full")));
  ASSERT_TRUE(outcome.grant);
  EXPECT_EQ(outcome.grant->status(), absl::ResourceExhaustedError("full"));
  broker_.Release(request, scheduler::Ending::kCancelled);
}

TEST_F(StreamBrokerTest, ARequestThatNobodyAnsweredWaitsForAnotherGrant) {
  const auto link = Attach();
  Outcome outcome;
  const TimePoint begin = clock_.Now();
  const RequestId request = Ask(outcome);
  Grant(request, 7);
  outcome.grant.reset();
  clock_.Advance(milliseconds(300));
  broker_.AskAgain(request);
  ASSERT_EQ(link->sent.size(), 3u);
  const v1::RouterMessage::AskAgain& again = link->sent[2].ask_again();
  EXPECT_EQ(again.demand().request_id(), request.value);
  EXPECT_EQ(FromMessage(again.demand()).arrival, begin) << "its old place";
  EXPECT_EQ(again.lease_id(), 7u);
  EXPECT_FALSE(outcome.grant);
  Grant(request, 8);
  ASSERT_TRUE(outcome.grant && outcome.grant->ok());
  EXPECT_EQ((*outcome.grant)->lease, LeaseId{8});
  broker_.Release(request, scheduler::Ending::kAnswered);
  EXPECT_EQ(link->sent[3].release().lease_id(), 8u);
}

TEST_F(StreamBrokerTest, TheLossOfALeaseThatWasLeftIsNotTold) {
  Attach();
  Outcome outcome;
  const RequestId request = Ask(outcome);
  Grant(request, 7);
  broker_.AskAgain(request);
  Lose(request, 7);  // on its way meanwhile
  EXPECT_FALSE(outcome.lost);
  Grant(request, 8);
  Lose(request, 7);
  EXPECT_FALSE(outcome.lost);
  Lose(request, 8);
  EXPECT_EQ(outcome.lost, absl::UnavailableError("gone"));
  outcome.lost.reset();
  Lose(request, 8);
  EXPECT_FALSE(outcome.lost) << "once a grant";
  broker_.AskAgain(request);
  Grant(request, 9);
  Lose(request, 9);
  EXPECT_TRUE(outcome.lost);
}

TEST_F(StreamBrokerTest, ARequestAskedAgainWhileTorpordIsAwayWaitsForTheNextOne) {
  Attach();
  Outcome outcome;
  const RequestId request = Ask(outcome);
  Grant(request, 5);
  outcome.grant.reset();
  broker_.Detach();
  broker_.AskAgain(request);
  const auto link = Attach();
  const v1::RouterMessage::Holding& holding = link->sent[0].holding();
  EXPECT_EQ(holding.running_size(), 0);
  ASSERT_EQ(holding.waiting_size(), 1);
  EXPECT_EQ(holding.waiting(0).request_id(), request.value);
  Grant(request, 1);
  ASSERT_TRUE(outcome.grant && outcome.grant->ok());
}

TEST_F(StreamBrokerTest, WaitingRequestsAreAskedAgainUnderTheirIdsAndTimes) {
  Attach();
  Outcome first;
  Outcome second;
  const TimePoint begin = clock_.Now();
  const RequestId first_id = Ask(first, "first");
  broker_.Detach();
  clock_.Advance(milliseconds(300));
  const RequestId second_id = Ask(second, "second");  // while torpord is away
  clock_.Advance(milliseconds(300));
  const auto link = Attach();
  const auto& waiting = link->sent[0].holding().waiting();
  ASSERT_EQ(waiting.size(), 2);
  EXPECT_EQ(waiting[0].request_id(), first_id.value);
  EXPECT_EQ(FromMessage(waiting[0]).arrival, begin);
  EXPECT_EQ(waiting[1].request_id(), second_id.value);
  EXPECT_EQ(FromMessage(waiting[1]).arrival, begin + milliseconds(300));
  EXPECT_EQ(FromMessage(waiting[1]).give_up, begin + milliseconds(300) + seconds(30));
  Grant(second_id, 1);
  EXPECT_TRUE(second.grant->ok());
  EXPECT_FALSE(first.grant);
}

TEST_F(StreamBrokerTest, ARequestWhoseClientLeftIsNotAskedAgain) {
  Attach();
  Outcome outcome;
  const RequestId request = Ask(outcome);
  broker_.Detach();
  broker_.Release(request, scheduler::Ending::kCancelled);
  const auto link = Attach();
  EXPECT_EQ(link->sent[0].holding().waiting_size(), 0);
  EXPECT_EQ(link->sent[0].holding().released_size(), 0);
}

TEST_F(StreamBrokerTest, RunningRequestsGoOnAndTheirEndsAreKept) {
  Attach();
  Outcome runs;
  Outcome ends;
  const RequestId running = Ask(runs);
  const RequestId ended = Ask(ends);
  Grant(running, 5);
  Grant(ended, 6);
  broker_.Detach();
  EXPECT_FALSE(runs.lost);
  broker_.Release(ended, scheduler::Ending::kAnswered);
  const auto link = Attach();
  const v1::RouterMessage::Holding& holding = link->sent[0].holding();
  ASSERT_EQ(holding.running_size(), 1);
  EXPECT_EQ(holding.running(0).demand().request_id(), running.value);
  EXPECT_EQ(holding.running(0).demand().ran_on(), "i");
  EXPECT_GT(holding.running(0).demand().granted_ns(), 0);
  EXPECT_EQ(holding.running(0).lease_id(), 5u);
  ASSERT_EQ(holding.released_size(), 1);
  EXPECT_EQ(holding.released(0).lease_id(), 6u);
  EXPECT_EQ(EndingOf(holding.released(0)), scheduler::Ending::kAnswered);
  broker_.Detach();
  EXPECT_EQ(Attach()->sent[0].holding().released_size(), 0) << "told once";
}

TEST_F(StreamBrokerTest, AConfirmationIsAskedOfTheNextTorpord) {
  Attach();
  Outcome outcome;
  const RequestId request = Ask(outcome);
  Grant(request, 5);
  broker_.Detach();
  Confirm(request, outcome);
  const auto link = Attach();
  ASSERT_EQ(link->sent.size(), 2u);
  EXPECT_EQ(link->sent[1].confirm().request_id(), request.value);
  EXPECT_EQ(link->sent[1].confirm().lease_id(), 5u);
  Lose(request, 5);
  EXPECT_EQ(outcome.lost, absl::UnavailableError("gone"));
  EXPECT_EQ(outcome.confirmed, 0);
  v1::TorpordMessage::Confirmed confirmed;
  confirmed.set_request_id(request.value);
  broker_.OnMessage(confirmed);
  EXPECT_EQ(outcome.confirmed, 1);
}

TEST_F(StreamBrokerTest, WhatTorpordCannotConfirmInASecondIsLost) {
  Attach();
  Outcome outcome;
  const RequestId request = Ask(outcome);
  Grant(request, 5);
  broker_.Detach();
  Confirm(request, outcome);
  clock_.Advance(milliseconds(999));
  broker_.Expire();
  EXPECT_EQ(outcome.confirmed, 0);
  clock_.Advance(milliseconds(1));
  broker_.Expire();
  EXPECT_EQ(outcome.lost, absl::UnavailableError("torpord is away"));
  EXPECT_EQ(outcome.confirmed, 1);
}

TEST_F(StreamBrokerTest, RequestsAreGivenUpWhileTorpordIsAway) {
  Outcome outcome;
  const RequestId request = Ask(outcome);
  clock_.Advance(seconds(30) - milliseconds(1));
  broker_.Expire();
  EXPECT_FALSE(outcome.grant);
  clock_.Advance(milliseconds(1));
  broker_.Expire();
  ASSERT_TRUE(outcome.grant);
  EXPECT_EQ(outcome.grant->status(), absl::DeadlineExceededError("torpord is away"));
  const auto link = Attach();
  EXPECT_EQ(link->sent[0].holding().waiting_size(), 0);
  broker_.Release(request, scheduler::Ending::kCancelled);
}

TEST_F(StreamBrokerTest, TorpordHasASecondToGiveARequestUp) {
  Attach();
  Outcome outcome;
  Ask(outcome);
  clock_.Advance(seconds(30) + milliseconds(999));
  broker_.Expire();
  EXPECT_FALSE(outcome.grant);
  clock_.Advance(milliseconds(1));
  broker_.Expire();
  ASSERT_TRUE(outcome.grant);
  EXPECT_EQ(outcome.grant->status(), absl::DeadlineExceededError("torpord does not answer"));
}

TEST_F(StreamBrokerTest, ARequestThatIsAskedAgainWaitsAsLongAgain) {
  const auto link = Attach();
  Outcome outcome;
  const RequestId request = Ask(outcome);
  Grant(request, 7);
  outcome.grant.reset();
  clock_.Advance(seconds(40));
  broker_.AskAgain(request);
  EXPECT_EQ(FromMessage(link->sent.back().ask_again().demand()).give_up,
            clock_.Now() + seconds(30));
  clock_.Advance(seconds(30));
  broker_.Expire();
  EXPECT_FALSE(outcome.grant);
  clock_.Advance(seconds(1));
  broker_.Expire();
  EXPECT_TRUE(outcome.grant);
}

TEST_F(StreamBrokerTest, AnswersForRequestsThatHaveGoneAreIgnored) {
  Attach();
  Outcome outcome;
  const RequestId request = Ask(outcome);
  broker_.Release(request, scheduler::Ending::kCancelled);
  Grant(request, 1);
  broker_.OnMessage(ToMessage(request.value, absl::UnavailableError("late")));
  EXPECT_FALSE(outcome.grant);
}

TEST_F(StreamBrokerTest, ASaveGoesOnWithTheNextTorpord) {
  Attach();
  Outcome outcome;
  const RequestId request = Ask(outcome);
  Grant(request, 3);
  broker_.Save(request, [&outcome] { ++outcome.confirmed; });
  broker_.Detach();
  clock_.Advance(seconds(30));
  broker_.Expire();
  EXPECT_EQ(outcome.confirmed, 0) << "it takes longer than a confirmation";
  const auto next = Attach();
  ASSERT_EQ(next->sent.size(), 2u);
  EXPECT_EQ(next->sent[1].confirm().request_id(), request.value);
  EXPECT_TRUE(next->sent[1].confirm().saves());
  clock_.Advance(seconds(600));
  broker_.Expire();
  EXPECT_FALSE(outcome.lost) << "the router's request has a limit of its own";
  broker_.Release(request, scheduler::Ending::kLost);
}

}  // namespace
}  // namespace torpor::server
