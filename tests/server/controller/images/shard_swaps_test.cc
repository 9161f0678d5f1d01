#include "server/controller/images/shard_swaps.h"

#include "tests/server/controller/node_world.h"

namespace torpor::server {
namespace {

class ShardSwapsTest : public NodeWorld {
 protected:
  scheduler::SwapIn SwapIn() { return {.instance = InstanceOf("a").id, .gpu = GpuIndex{0}}; }

  const std::unique_ptr<scheduler::Scheduler> own_scheduler_ = MakeScheduler();
  scheduler::Scheduler& scheduler_ = *own_scheduler_;
  PeerAccess peers_{tables_.executors, tables_.sessions};
  ImageSwaps swaps_{tables_.executors,
                    tables_.instances,
                    tables_.sessions,
                    peers_,
                    host_.room,
                    telemetry_,
                    loop_,
                    [] {}};
  ImageMoves moves_{tables_.executors, swaps_};
  ShardSwaps shards_{tables_.instances,
                     tables_.sessions,
                     swaps_,
                     moves_,
                     scheduler_,
                     events_,
                     telemetry_,
                     {.ensure = [this](ExecutorKey key,
                                       const DomainSeats::Then& then) { seats_.Ensure(key, then); },
                      .require = [this](ExecutorKey key) { return seats_.Require(key); },
                      .left = [this](GpuIndex gpu) { seats_.OnImageLeft(gpu); }}};
};

TEST_F(ShardSwapsTest, ASwapInIsDoneWhenAllSessionsAreThere) {
  AddSession("a");
  AddSession("a");
  shards_.Apply(SwapIn());
  Answer(0);
  EXPECT_TRUE(events_.fed.empty());
  Answer(0);
  const auto done = events_.Of<scheduler::SwapInDone>();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_TRUE(done[0].ok);
  EXPECT_EQ(InstanceOf("a").placement.source, SwapSource::kHost);
  EXPECT_EQ(shards_.totals().swaps_in, 1u);
}

TEST_F(ShardSwapsTest, AfterAFailureNoSessionStays) {
  const SessionPtr first = AddSession("a");
  AddSession("a");
  shards_.Apply(SwapIn());
  Answer(0);
  EXPECT_TRUE(first->image.IsOn(GpuIndex{0}));
  Answer(0, absl::ResourceExhaustedError("full"));
  EXPECT_TRUE(Operation(0).swap_out().drop());
  EXPECT_TRUE(events_.fed.empty());
  Settle();
  const auto done = events_.Of<scheduler::SwapInDone>();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_FALSE(done[0].ok);
  EXPECT_FALSE(first->image.gpu());
}

TEST_F(ShardSwapsTest, OfALostSwapInTheSchedulerHearsByTheLoss) {
  AddSession("a");
  shards_.Apply(SwapIn());
  KillExecutor(0);
  EXPECT_TRUE(events_.fed.empty());
}

TEST_F(ShardSwapsTest, ASwapOutIsDoneWhenAllSessionsHaveLeft) {
  for (int i = 0; i < 2; ++i) Land(AddSession("a"), 0);
  shards_.Apply(scheduler::SwapOut{.instance = InstanceOf("a").id, .gpu = GpuIndex{0}});
  Answer(0);
  EXPECT_TRUE(events_.fed.empty());
  Answer(0);
  EXPECT_EQ(events_.Of<scheduler::SwapOutDone>().size(), 1u);
  EXPECT_EQ(shards_.totals().swaps_out, 1u);
}

TEST_F(ShardSwapsTest, AShardWithoutSessionsComesAndLeavesAtOnce) {
  shards_.Apply(SwapIn());
  shards_.Apply(scheduler::SwapOut{.instance = InstanceOf("a").id, .gpu = GpuIndex{0}});
  EXPECT_EQ(events_.Of<scheduler::SwapInDone>().size(), 1u);
  EXPECT_EQ(events_.Of<scheduler::SwapOutDone>().size(), 1u);
}

TEST_F(ShardSwapsTest, WithNothingToWriteBackTheImageIsClean) {
  AddSession("a");
  shards_.Apply(scheduler::WriteBack{.instance = InstanceOf("a").id, .gpu = GpuIndex{0}});
  const auto done = events_.Of<scheduler::WriteBackDone>();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_TRUE(done[0].is_clean);
}

TEST_F(ShardSwapsTest, AWriteBackIsTriedAgainAfterASuccess) {
  const SessionPtr session = AddSession("a");
  Land(session, 0);
  session->image.NoteLease(LeaseId{1}, /*is_explicit=*/true);
  shards_.Apply(scheduler::WriteBack{.instance = InstanceOf("a").id, .gpu = GpuIndex{0}});
  Answer(0, absl::OkStatus(), [](auto& done) { done.set_has_more(true); });
  const auto done = events_.Of<scheduler::WriteBackDone>();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_FALSE(done[0].is_clean);
}

TEST_F(ShardSwapsTest, TheLastCopyEndsTheArrival) {
  const SessionPtr session = AddSession("a");
  session->image.BeginArrival(GpuIndex{0});
  v1::ExecutorMessage::SwapInComplete complete;
  complete.set_session_id(session->id.value);
  shards_.OnSwapInComplete(GpuIndex{1}, complete);
  EXPECT_TRUE(session->image.is_arriving()) << "an earlier swap-in elsewhere";
  shards_.OnSwapInComplete(GpuIndex{0}, complete);
  EXPECT_FALSE(session->image.is_arriving());
}

}  // namespace
}  // namespace torpor::server
