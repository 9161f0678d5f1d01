#include "server/controller/placement_log.h"

#include "tests/server/controller/node_world.h"

namespace torpor::server {
namespace {

class PlacementLogTest : public NodeWorld {
 protected:
  void Feed(const scheduler::Event& event) {
    log_.Before(event);
    log_.After(scheduler_.OnEvent(event, loop_.Now()));
  }

  const std::unique_ptr<scheduler::Scheduler> own_scheduler_ = MakeScheduler();
  scheduler::Scheduler& scheduler_ = *own_scheduler_;
  PlacementLog log_{tables_.instances, scheduler_, loop_};
};

TEST_F(PlacementLogTest, NotesWhenAnInstanceGotItsGpuAndItsSwapIn) {
  loop_.Advance(std::chrono::seconds(3));
  Feed(scheduler::RequestArrived{.request = RequestId{1}, .instance = InstanceOf("a").id});
  const InstancePlacement& placement = InstanceOf("a").placement;
  EXPECT_EQ(placement.since, loop_.Now());
  EXPECT_EQ(placement.swap_in, loop_.Now());
  EXPECT_FALSE(placement.peer);
  EXPECT_TRUE(placement.evicted.empty());
}

TEST_F(PlacementLogTest, ANewTenancyOnTheSameGpuIsAPlacementOfItsOwn) {
  const InstanceId a = InstanceOf("a").id;
  Feed(scheduler::RequestArrived{.request = RequestId{1}, .instance = a});
  Feed(scheduler::RequestArrived{.request = RequestId{2}, .instance = a});
  Feed(scheduler::SwapInDone{a, scheduler_.node().instances.at(a).tenancy.gpu, true});
  Feed(scheduler::RequestGone{RequestId{1}, scheduler::Ending::kAnswered});
  loop_.Advance(std::chrono::seconds(3));
  Feed(scheduler::LeaseEnded{a});
  EXPECT_EQ(InstanceOf("a").placement.since, loop_.Now());
}

}  // namespace
}  // namespace torpor::server
