#include "server/controller/scheduler_feed.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "scheduler/policies.h"
#include "tests/server/controller/fake_loop.h"

namespace torpor::server {
namespace {

class SchedulerFeedTest : public testing::Test {
 protected:
  SchedulerFeedTest() {
    feed_.SetHandlers(
        {.before = [this](const scheduler::Event&) { log_.emplace_back("before"); },
         .decided = [this](const scheduler::Actions&) { log_.emplace_back("decided"); },
         .apply = [this](const scheduler::Action& action) { Apply(action); },
         .settled = [this] { log_.emplace_back("settled"); }});
    feed_.Feed(scheduler::FunctionSet{.function = scheduler::FunctionId{1}});
    feed_.Feed(
        scheduler::InstanceAdded{.instance = InstanceId{1}, .function = scheduler::FunctionId{1}});
    feed_.Feed(scheduler::ExecutorUp{.gpu = GpuIndex{0}, .capacity = 64 * kMiB});
    log_.clear();
  }

  void Apply(const scheduler::Action& action) {
    log_.emplace_back("apply");
    if (std::holds_alternative<scheduler::SwapIn>(action)) {
      feed_.Feed(scheduler::SwapInDone{InstanceId{1}, GpuIndex{0}, true});
      log_.emplace_back("applied");
    }
  }
  static scheduler::Setup MakeSetup() {
    scheduler::Setup setup;
    setup.policies.queue = scheduler::MakeFifoQueue();
    setup.policies.placement = scheduler::MakeResidentFirstPlacement();
    setup.policies.eviction = scheduler::MakeLruEviction();
    return setup;
  }

  FakeLoop loop_;
  int recorded_ = 0;
  std::vector<std::string> log_;
  SchedulerFeed feed_{
      MakeSetup(), loop_,
      [this](TimePoint, const scheduler::Event&, const scheduler::Actions&) { ++recorded_; }};
};

TEST_F(SchedulerFeedTest, AnActionIsFinishedBeforeThoseToWhichItLeads) {
  feed_.Feed(scheduler::RequestArrived{.request = RequestId{1}, .instance = InstanceId{1}});
  const std::vector<std::string> expected = {"before",  "decided", "apply", "before",
                                             "decided", "applied", "apply", "settled"};
  EXPECT_EQ(log_, expected) << "swap-in, then the grant";
}

TEST_F(SchedulerFeedTest, RecordsEveryEvent) {
  const int before = recorded_;
  feed_.Feed(scheduler::TimePassed{});
  EXPECT_EQ(recorded_, before + 1);
}

}  // namespace
}  // namespace torpor::server
