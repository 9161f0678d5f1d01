#include "scheduler/setup.h"

#include "tests/scheduler/scheduler_test.h"

namespace torpor::scheduler {
namespace {

using std::chrono::milliseconds;

constexpr FunctionId kFunction{1};

// A scheduler of the setup with these constants, which knows instance A of function 1.
class SetupConstantsTest : public testing::Test {
 protected:
  void Start(const PolicyConstants& constants) {
    auto setup = MakeSetup("torpor", 0, constants);
    ASSERT_TRUE(setup);
    scheduler_.emplace(std::move(setup->policies), setup->options);
    Tell(ExecutorUp{kGpu0, 100});
    Tell(FunctionSet{.function = kFunction, .objective = {.deadline = milliseconds(50)}});
    Tell(InstanceAdded{kA, 1, {}, kFunction});
    Tell(GrowthWanted{GrowthId{1}, kA, 10});
  }
  void Tell(const Event& event) { scheduler_->OnEvent(event, now_); }
  // A request that takes `run` once the image is there.
  void Serve(Duration run) {
    const RequestId request{next_request_++};
    Tell(RequestArrived{request, kA});
    Tell(SwapInDone{kA, kGpu0});
    now_ += run;
    Tell(RequestGone{request, Ending::kAnswered});
    Tell(LeaseEnded{kA});
  }
  const FunctionState& function() { return scheduler_->node().functions.at(kFunction); }

  std::optional<Scheduler> scheduler_;
  TimePoint now_{};
  std::uint64_t next_request_ = 1;
};

TEST_F(SetupConstantsTest, AlphaBeginsWhereItIsSet) {
  Start({.alpha_start = 0.25});
  Serve(milliseconds(1));
  ASSERT_TRUE(scheduler_->StandingOf(kFunction));
  EXPECT_EQ(scheduler_->StandingOf(kFunction)->alpha, 0.25);
}

TEST_F(SetupConstantsTest, AlphaAdaptsAfterItsPeriod) {
  Start({.alpha_start = 0.5, .alpha_period = milliseconds(100)});
  Serve(milliseconds(60));  // late: nobody complies
  now_ += milliseconds(100);
  Serve(milliseconds(10));
  now_ += milliseconds(100);
  Serve(milliseconds(10));
  EXPECT_EQ(scheduler_->StandingOf(kFunction)->alpha, 1) << "all comply in the last period";
}

TEST_F(SetupConstantsTest, HeavyIsWhatTheRatioSays) {
  for (const double ratio : {1.3, 2.0}) {
    now_ = {};
    Start({.heavy_ratio = ratio});
    Serve(milliseconds(15));
    Serve(milliseconds(10));
    EXPECT_EQ(scheduler_->node().IsHeavy(function()), ratio < 1.5) << ratio;
  }
}

TEST_F(SetupConstantsTest, OutcomesCountForTheWindow) {
  Start({.outcome_window = std::chrono::seconds(60)});
  Serve(milliseconds(1));
  EXPECT_EQ(function().recent.finished(), 1u);
  now_ += std::chrono::seconds(60);
  Tell(TimePassed{});
  EXPECT_EQ(function().recent.finished(), 1u) << "it is forgotten with others of the last sixth";
  now_ += std::chrono::seconds(10);
  Tell(TimePassed{});
  EXPECT_EQ(function().recent.finished(), 0u);
  EXPECT_EQ(function().finished, 1u);
}

}  // namespace
}  // namespace torpor::scheduler
