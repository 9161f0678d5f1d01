#include "tests/scheduler/scheduler_test.h"

// What counts against a function's objective.
namespace torpor::scheduler {
namespace {

using std::chrono::milliseconds;

class SchedulerEndingsTest : public SchedulerTest {
 protected:
  SchedulerEndingsTest() {
    Up(kGpu0, 100);
    Tell(FunctionSet{.function = FunctionId{kA.value},
                     .objective = {.deadline = milliseconds(100)}});
    Add(kA, 60, 2);
    MakeResident(kA, kGpu0);
  }

  // A request has the GPU, runs for so long, and ends.
  void Run(Duration time, Ending ending) {
    const RequestId request{next_request_++};
    ASSERT_TRUE(Only<Grant>(Arrive(request.value, kA)));
    Advance(time);
    Tell(RequestGone{request, ending});
    Tell(LeaseEnded{kA});
  }
  const FunctionState& function() { return scheduler_.node().functions.at(FunctionId{kA.value}); }

  std::uint64_t next_request_ = 1;
};

TEST_F(SchedulerEndingsTest, AQuickErrorIsAMiss) {
  Run(milliseconds(1), Ending::kFailed);
  EXPECT_EQ(function().finished, 1u);
  EXPECT_EQ(function().in_time, 0u);
  EXPECT_FALSE(function().run_times.of(ImageSource::kResident).value())
      << "nor does it tell how long a run takes";
}

TEST_F(SchedulerEndingsTest, AnAnswerCountsByItsTime) {
  Run(milliseconds(100), Ending::kAnswered);
  EXPECT_EQ(function().in_time, 1u);
  Run(milliseconds(101), Ending::kAnswered);
  EXPECT_EQ(function().in_time, 1u);
  EXPECT_EQ(function().finished, 2u);
}

TEST_F(SchedulerEndingsTest, WhoLeavesBeforeTheDeadlineHasNothingToComplainOf) {
  Run(milliseconds(100), Ending::kCancelled);
  EXPECT_EQ(function().finished, 0u);
  Run(milliseconds(101), Ending::kCancelled);
  EXPECT_EQ(function().finished, 1u);
  EXPECT_EQ(function().in_time, 0u);
}

TEST_F(SchedulerEndingsTest, WhatWaitsMayFailToo) {
  Arrive(1, kA);
  Add(kB, 60);
  Arrive(2, kB);
  Tell(RequestGone{RequestId{2}, Ending::kFailed});
  EXPECT_EQ(scheduler_.node().functions.at(FunctionId{kB.value}).finished, 1u);
}

TEST_F(SchedulerEndingsTest, WhatIsLostWithItsExecutorIsAMiss) {
  Arrive(1, kA);
  Tell(ExecutorDown{kGpu0});
  EXPECT_EQ(function().finished, 0u) << "it may come again";
  Tell(RequestGone{RequestId{1}, Ending::kLost});
  EXPECT_EQ(function().finished, 1u);
  EXPECT_EQ(function().in_time, 0u);
  EXPECT_TRUE(scheduler_.node().requests.empty());
}

TEST_F(SchedulerEndingsTest, WhatComesAgainCountsOnce) {
  const TimePoint arrival = now_;
  Arrive(1, kA);
  Tell(ExecutorDown{kGpu0});
  Tell(ExecutorUp{kGpu0, 100});
  Tell(RequestArrived{.request = RequestId{1}, .instance = kA, .arrival = arrival});
  EXPECT_TRUE(Only<Grant>(Tell(SwapInDone{kA, kGpu0, true})));
  Tell(RequestGone{RequestId{1}, Ending::kAnswered});
  EXPECT_EQ(function().finished, 1u);
  EXPECT_EQ(function().in_time, 1u);
}

TEST_F(SchedulerEndingsTest, WhatOutlivesItsLeaseCountsWhenItIsOver) {
  Arrive(1, kA);
  Tell(LeaseEnded{kA});
  EXPECT_TRUE(Tell(RequestGone{RequestId{1}, Ending::kFailed}).empty());
  EXPECT_EQ(function().finished, 1u);
  EXPECT_EQ(function().in_time, 0u);
  EXPECT_TRUE(Only<Grant>(Arrive(2, kA)));
}

TEST_F(SchedulerEndingsTest, WhatComesAgainLeavesTheLeaseThatItHad) {
  Arrive(1, kA);
  EXPECT_TRUE(
      Only<Revoke>(Tell(RequestArrived{.request = RequestId{1}, .instance = kA, .arrival = now_})));
  EXPECT_TRUE(Only<Grant>(Tell(LeaseEnded{kA})));
  EXPECT_TRUE(Only<Revoke>(Tell(RequestGone{RequestId{1}, Ending::kAnswered})));
}

TEST_F(SchedulerEndingsTest, WhatWaitsComesAgainForAnother) {
  Add(kB, 60);
  const TimePoint arrival = now_;
  Arrive(1, kA);
  Tell(ExecutorDown{kGpu0});
  Tell(RequestArrived{.request = RequestId{1}, .instance = kA, .arrival = arrival});
  Advance(milliseconds(10));
  Tell(RequestArrived{.request = RequestId{1}, .instance = kB, .arrival = arrival});
  EXPECT_TRUE(scheduler_.node().instances.at(kA).waiting.empty());
  EXPECT_EQ(scheduler_.waiting(), 1u);
  EXPECT_EQ(Only<SwapIn>(Tell(ExecutorUp{kGpu0, 100}))->instance, kB);
  EXPECT_EQ(Only<Grant>(Tell(SwapInDone{kB, kGpu0, true}))->instance, kB);
  EXPECT_TRUE(Only<Revoke>(Tell(RequestGone{RequestId{1}, Ending::kAnswered})));
  EXPECT_EQ(scheduler_.node().functions.at(FunctionId{kB.value}).finished, 1u);
}

TEST_F(SchedulerEndingsTest, WhatComesAgainWhileItsImageComesLeavesTheGpu) {
  Add(kB, 60);
  EXPECT_TRUE(Only<SwapOut>(Arrive(1, kB)));
  EXPECT_TRUE(Only<SwapIn>(Tell(SwapOutDone{kA, kGpu0})));
  Tell(RequestArrived{.request = RequestId{1}, .instance = kA, .arrival = now_});
  Tell(SwapInDone{kB, kGpu0, true});
  EXPECT_EQ(scheduler_.node().gpus.at(kGpu0).tenant, kA) << "its turn";
}

}  // namespace
}  // namespace torpor::scheduler
