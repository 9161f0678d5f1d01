#include "scheduler/request_queue.h"

#include "tests/scheduler/parts_test.h"

namespace torpor::scheduler {
namespace {

using std::chrono::milliseconds;

using RequestQueueTest = PartsTest;

TEST_F(RequestQueueTest, AnIdleInstanceStandsThereByItsFirstRequest) {
  Wait(1, Add(1, 10));
  Wait(2, Add(2, 10));
  Wait(3, instance(1));
  EXPECT_EQ(queue_.First(9), (std::vector<InstanceId>{InstanceId{1}, InstanceId{2}}));
  EXPECT_EQ(queue_.size(), 2u);
  EXPECT_EQ(queue_.waiting(), 3u);
  queue_.Remove(node_.requests.at(RequestId{1}));
  EXPECT_EQ(queue_.First(1), std::vector<InstanceId>{InstanceId{2}});
}

TEST_F(RequestQueueTest, ATenantDoesNotStandThere) {
  Wait(1, Add(1, 10));
  instance(1).tenancy.phase = Phase::kLeased;
  queue_.Update(instance(1));
  EXPECT_EQ(queue_.size(), 0u);
  EXPECT_EQ(queue_.waiting(), 1u);
}

TEST_F(RequestQueueTest, ImplicitRequestsAreNotCounted) {
  Add(1, 10);
  queue_.Add({.request = RequestId{1},
              .instance = InstanceId{1},
              .turn = {},
              .deadline = TimePoint::max(),
              .is_implicit = true});
  EXPECT_EQ(queue_.size(), 1u);
  EXPECT_EQ(queue_.waiting(), 0u);
}

TEST_F(RequestQueueTest, ARefusedRequestIsForgottenAndCountsAsMissed) {
  Wait(1, Add(1, 10));
  Wait(2, instance(1));
  queue_.Refuse(RequestId{1}, Refusal::kNoRoom);
  EXPECT_EQ(Only<Refuse>()->reason, Refusal::kNoRoom);
  EXPECT_EQ(node_.requests.count(RequestId{1}), 0u);
  EXPECT_EQ(node_.FunctionOf(instance(1)).recent.finished(), 1u);
  queue_.RefuseAll(instance(1), Refusal::kTooLarge);
  EXPECT_EQ(Only<Refuse>()->request, RequestId{2});
  EXPECT_EQ(queue_.size(), 0u);
}

TEST_F(RequestQueueTest, AnIdleInstanceTakesTheBusiestSiblingsRequest) {
  Add(1, 10);
  Instance& sibling = Add(2, 10);
  sibling.function = FunctionId{1};
  node_.functions.at(FunctionId{1}).instances.push_back(sibling.id);
  queue_.Add({.request = RequestId{7},
              .instance = sibling.id,
              .turn = {},
              .deadline = TimePoint::max(),
              .is_for_any = true});
  queue_.TakeFromSibling(instance(1));
  EXPECT_EQ(instance(1).waiting.size(), 1u);
  EXPECT_TRUE(instance(2).waiting.empty());
}

TEST_F(RequestQueueTest, OutcomesStopToCount) {
  const Request request = Wait(1, Add(1, 10));
  queue_.Count(request, true);
  EXPECT_EQ(node_.FunctionOf(instance(1)).recent.finished(), 1u);
  Pass(3 * PolicyConstants().outcome_window);
  queue_.ForgetOutcomes();
  EXPECT_EQ(node_.FunctionOf(instance(1)).recent.finished(), 0u);
}

class LateRequestsTest : public PartsTest {
 protected:
  LateRequestsTest() : PartsTest({.too_late = TooLate::kServeLast}) {}
};

TEST_F(LateRequestsTest, ALateRequestStandsBehindOthersAndKeepsItsWait) {
  Wait(1, Add(1, 10), TimePoint(milliseconds(5)));
  Wait(2, Add(2, 10));
  EXPECT_FALSE(queue_.StepAside(instance(1)));
  Pass(milliseconds(9));
  EXPECT_TRUE(queue_.StepAside(instance(1)));
  EXPECT_EQ(queue_.First(1), std::vector<InstanceId>{InstanceId{2}});
  EXPECT_EQ(instance(1).wait.since, TimePoint());
  EXPECT_FALSE(queue_.StepAside(instance(1)));  // once
}

class ColdRequestsTest : public PartsTest {
 protected:
  ColdRequestsTest() : PartsTest({.binding = MakeResidentBinding()}) {}
};

TEST_F(ColdRequestsTest, AColdInstanceIsNotInTheQueueUntilItsImageIsThere) {
  AddGpu(kHere, 100);
  Wait(1, Add(1, 10));
  EXPECT_EQ(queue_.size(), 0u);
  EXPECT_EQ(queue_.cold().count(InstanceId{1}), 1u);
  Put(instance(1), kHere);
  queue_.Update(instance(1));
  EXPECT_EQ(queue_.size(), 1u);
}

}  // namespace
}  // namespace torpor::scheduler
