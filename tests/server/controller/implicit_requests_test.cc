#include "server/controller/implicit_requests.h"

#include "tests/server/controller/node_world.h"

namespace torpor::server {
namespace {

class ImplicitRequestsTest : public NodeWorld {
 protected:
  ImplicitRequests requests_{tables_.sessions, events_};
  const SessionPtr session_ = AddSession("a");
};

TEST_F(ImplicitRequestsTest, AsksForALeaseByANumberOfItsOwn) {
  requests_.Add(*session_);
  const auto arrived = events_.Of<scheduler::RequestArrived>();
  ASSERT_EQ(arrived.size(), 1u);
  EXPECT_TRUE(arrived[0].is_implicit);
  EXPECT_EQ(arrived[0].instance, InstanceOf("a").id);
  EXPECT_EQ(arrived[0].request, session_->lease.implicit_request);
  EXPECT_EQ(requests_.SessionOf(arrived[0].request), session_);
  EXPECT_EQ(requests_.SessionOf(RequestId{1}), nullptr) << "a request of the router";
}

TEST_F(ImplicitRequestsTest, AWithdrawnRequestIsGone) {
  requests_.Withdraw(*session_);
  EXPECT_TRUE(events_.fed.empty()) << "there was none";
  requests_.Add(*session_);
  const RequestId request = session_->lease.implicit_request;
  requests_.Withdraw(*session_);
  EXPECT_EQ(events_.Of<scheduler::RequestGone>().at(0).request, request);
  EXPECT_FALSE(requests_.Has(request));
  EXPECT_FALSE(session_->lease.implicit_request);
}

TEST_F(ImplicitRequestsTest, ATakenRequestIsNotToldOf) {
  requests_.Add(*session_);
  const RequestId request = session_->lease.implicit_request;
  EXPECT_EQ(requests_.Take(*session_), request);
  EXPECT_FALSE(requests_.Take(*session_));
  EXPECT_TRUE(events_.Of<scheduler::RequestGone>().empty());
}

TEST_F(ImplicitRequestsTest, ARequestIsQueuedAgain) {
  requests_.Requeue(RequestId{1});
  EXPECT_TRUE(events_.fed.empty());
  requests_.Add(*session_);
  requests_.Requeue(session_->lease.implicit_request);
  EXPECT_EQ(events_.Of<scheduler::RequestArrived>().size(), 2u);
}

}  // namespace
}  // namespace torpor::server
