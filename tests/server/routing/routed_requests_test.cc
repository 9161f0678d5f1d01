#include "server/routing/routed_requests.h"

#include <gtest/gtest.h>

#include "server/broker/broker_messages.h"
#include "tests/server/router/fake_broker.h"
#include "tests/server/routing/recording_link.h"

namespace torpor::server {
namespace {

class RoutedRequestsTest : public testing::Test {
 protected:
  static v1::Demand Demand(std::uint64_t id, const std::string& name = "r") {
    return ToMessage(id, RequestBroker::Demand{.function = "f", .id = name, .give_up = {}});
  }
  void Release(std::uint64_t id, scheduler::Ending ending) {
    requests_.OnMessage(ToMessage(id, LeaseId{}, ending));
  }
  void Confirm(std::uint64_t id, std::uint64_t lease = 0) {
    v1::RouterMessage::Confirm confirm;
    confirm.set_request_id(id);
    confirm.set_lease_id(lease);
    requests_.OnMessage(confirm);
  }
  void Save(std::uint64_t id) {
    v1::RouterMessage::Confirm save;
    save.set_request_id(id);
    save.set_saves(true);
    requests_.OnMessage(save);
  }
  void AskAgain(std::uint64_t id) {
    v1::RouterMessage::AskAgain again;
    *again.mutable_demand() = Demand(id, "again");
    requests_.OnMessage(again);
  }
  RequestGrant GrantOf(std::uint64_t lease) const {
    RequestGrant grant = broker_.SomeGrant();
    grant.lease = LeaseId{lease};
    return grant;
  }
  const std::vector<v1::TorpordMessage>& sent() const { return link_->sent; }

  FakeBroker broker_;
  std::shared_ptr<RecordingRouterLink> link_ = std::make_shared<RecordingRouterLink>();
  std::shared_ptr<std::atomic<bool>> is_paused_ = std::make_shared<std::atomic<bool>>(false);
  RoutedRequests requests_{broker_, link_, is_paused_};
};

TEST_F(RoutedRequestsTest, AnswersCarryTheRoutersId) {
  requests_.OnMessage(Demand(70));
  ASSERT_EQ(sent().size(), 1u);
  EXPECT_EQ(sent()[0].grant().request_id(), 70u);
  EXPECT_EQ(sent()[0].grant().gpu(), 1);
  broker_.answer = [](const std::string&) { return absl::ResourceExhaustedError("full"); };
  requests_.OnMessage(Demand(71));
  EXPECT_EQ(FromMessage(sent()[1].refusal()), absl::ResourceExhaustedError("full"));
  broker_.Lose(1, absl::UnavailableError("died"));
  EXPECT_EQ(sent()[2].lost().request_id(), 70u);
  EXPECT_EQ(sent()[2].lost().message(), "died");
  Confirm(70);
  EXPECT_EQ(sent()[3].confirmed().request_id(), 70u);
  Release(70, scheduler::Ending::kLost);
  EXPECT_EQ(broker_.ended(scheduler::Ending::kLost), 1u);
}

TEST_F(RoutedRequestsTest, ARequestsWorkIsSaved) {
  requests_.OnMessage(Demand(70));
  std::vector<RequestId> saved;
  broker_.on_save = [&](RequestId request) { saved.push_back(request); };
  Save(70);
  EXPECT_EQ(saved, std::vector{RequestId{1}});
  EXPECT_EQ(sent()[1].confirmed().request_id(), 70u);
  Release(70, scheduler::Ending::kAnswered);
  Save(5);
  EXPECT_EQ(saved.size(), 1u);
  EXPECT_EQ(sent()[2].lost().request_id(), 5u) << "of a request that nobody knows";
  EXPECT_EQ(sent()[3].confirmed().request_id(), 5u);
}

TEST_F(RoutedRequestsTest, OfARefusedRequestNothingIsSaved) {
  broker_.answer = [](const std::string&) { return absl::NotFoundError("no function"); };
  requests_.OnMessage(Demand(70));
  bool has_saved = false;
  broker_.on_save = [&](RequestId) { has_saved = true; };
  Save(70);
  EXPECT_FALSE(has_saved);
  EXPECT_EQ(sent()[1].lost().request_id(), 70u);
  EXPECT_EQ(sent()[2].confirmed().request_id(), 70u);
  Release(70, scheduler::Ending::kLost);
}

TEST_F(RoutedRequestsTest, ARequestIsAskedAgainAndLossesNameTheLease) {
  broker_.answer = [this](const std::string&) { return GrantOf(11); };
  broker_.answer_again = [this] { return GrantOf(12); };
  requests_.OnMessage(Demand(70));
  broker_.Lose(1, absl::UnavailableError("died"));
  AskAgain(70);
  EXPECT_EQ(broker_.asked_again(), 1);
  EXPECT_EQ(broker_.acquired(), 1u);
  broker_.Lose(1, absl::UnavailableError("died, too"));
  ASSERT_EQ(sent().size(), 4u);
  EXPECT_EQ(sent()[1].lost().lease_id(), 11u);
  EXPECT_EQ(sent()[2].grant().request_id(), 70u);
  EXPECT_EQ(sent()[2].grant().lease_id(), 12u);
  EXPECT_EQ(sent()[3].lost().lease_id(), 12u);
  Release(70, scheduler::Ending::kLost);
  EXPECT_EQ(broker_.released(), 1u);
}

TEST_F(RoutedRequestsTest, ARequestThatTorpordDoesNotKnowIsAskedForAnew) {
  AskAgain(5);
  EXPECT_EQ(broker_.asked_again(), 0);
  EXPECT_EQ(broker_.acquired(), 1u);
  EXPECT_EQ(broker_.last_id(), "again");
  ASSERT_EQ(sent().size(), 1u);
  EXPECT_EQ(sent()[0].grant().request_id(), 5u);
}

TEST_F(RoutedRequestsTest, ARouterThatGoesHasItsRequestsCancelled) {
  for (const std::uint64_t id : {1, 2, 3}) requests_.OnMessage(Demand(id));
  Release(2, scheduler::Ending::kAnswered);
  EXPECT_EQ(requests_.ReleaseAll(), 2u);
  EXPECT_EQ(broker_.ended(scheduler::Ending::kCancelled), 2u);
  EXPECT_EQ(broker_.released(), 3u);
  EXPECT_EQ(requests_.ReleaseAll(), 0u);
}

TEST_F(RoutedRequestsTest, WhatRunsGoesOnBeforeWhatWaitsIsAsked) {
  broker_.answer = nullptr;
  v1::RouterMessage::Holding holding;
  *holding.add_waiting() = Demand(8, "waits");
  v1::RouterMessage::Holding::Running& running = *holding.add_running();
  *running.mutable_demand() = Demand(5, "runs");
  running.mutable_demand()->set_ran_on("i");
  running.set_lease_id(17);
  requests_.OnMessage(holding);
  EXPECT_EQ(broker_.acquired(), 2u);
  EXPECT_EQ(broker_.demand(1).id, "runs");
  EXPECT_EQ(broker_.demand(1).ran_on, "i");
  EXPECT_EQ(broker_.demand(2).ran_on, "");
  Confirm(5, 17);
  ASSERT_EQ(sent().size(), 1u);
  EXPECT_EQ(sent()[0].confirmed().request_id(), 5u);
  broker_.Lose(1, absl::UnavailableError("gone"));
  EXPECT_EQ(sent()[1].lost().lease_id(), 17u) << "the router knows no other";
  Release(5, scheduler::Ending::kAnswered);
  EXPECT_EQ(broker_.ended(scheduler::Ending::kAnswered), 1u);
}

TEST_F(RoutedRequestsTest, ALeaseThatNobodyKnowsIsLost) {
  v1::RouterMessage::Holding holding;
  holding.add_running()->set_lease_id(17);  // of a router that does not say more
  requests_.OnMessage(holding);
  *holding.add_waiting() = Demand(8, "waits");
  requests_.OnMessage(holding);
  EXPECT_EQ(broker_.acquired(), 1u);
  EXPECT_EQ(broker_.last_id(), "waits");
  ASSERT_EQ(sent().size(), 1u);
  EXPECT_EQ(sent()[0].grant().request_id(), 8u);
  Confirm(5, 17);
  ASSERT_EQ(sent().size(), 3u);
  EXPECT_EQ(sent()[1].lost().request_id(), 5u) << "its lease was an earlier torpord's";
  EXPECT_EQ(sent()[1].lost().lease_id(), 17u);
  EXPECT_EQ(sent()[2].confirmed().request_id(), 5u);
  Release(5, scheduler::Ending::kAnswered);
  EXPECT_EQ(broker_.released(), 0u);
}

TEST_F(RoutedRequestsTest, NewRequestsStayWithTheRouterDuringAHandover) {
  requests_.OnMessage(Demand(1));
  *is_paused_ = true;
  requests_.OnMessage(Demand(2));
  EXPECT_EQ(broker_.acquired(), 1u);
  Release(2, scheduler::Ending::kCancelled);
  EXPECT_EQ(broker_.released(), 0u);
  Release(1, scheduler::Ending::kAnswered);
  EXPECT_EQ(broker_.released(), 1u);
}

TEST_F(RoutedRequestsTest, ARefusalDuringAHandoverIsTheNextTorpords) {
  broker_.answer = nullptr;
  for (const std::uint64_t id : {1, 2}) requests_.OnMessage(Demand(id));
  *is_paused_ = true;
  broker_.Answer(1, absl::UnavailableError("the node is shutting down"));
  EXPECT_TRUE(sent().empty());
  broker_.Answer(2, broker_.SomeGrant());
  ASSERT_EQ(sent().size(), 1u) << "what can still run does";
  EXPECT_EQ(sent()[0].grant().request_id(), 2u);
}

}  // namespace
}  // namespace torpor::server
