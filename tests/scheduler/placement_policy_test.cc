#include <gtest/gtest.h>

#include <set>

#include "tests/scheduler/waiting_node.h"

namespace torpor::scheduler {
namespace {

using std::chrono::milliseconds;

constexpr GpuIndex kGpus[] = {{0}, {1}, {2}, {3}};

// Four GPUs, two behind each PCIe switch; 0 and 3 have the fastest NVLinks, 1 and 2 as well.
class PlacementTest : public testing::Test {
 protected:
  PlacementTest() : node_(MakeFifoQueue()) {
    for (const GpuIndex id : kGpus) {
      Gpu& gpu = node_.node().gpus[id];
      gpu.id = id;
      gpu.is_up = true;
      gpu.capacity = 1000;
      gpu.pcie_switch = id.value / 2;
      for (const int distance : {3, 1, 2}) gpu.sources.push_back(GpuIndex{id.value ^ distance});
    }
    for (const std::uint64_t id : {1, 2, 3}) Add(id);
  }

  // Runs in 20 ms, 30 from the host and 22 from another GPU.
  void Add(std::uint64_t id) {
    node_.AddFunction(id, {milliseconds(80), 0.98});
    node_.instance(id).image.bytes = 300;
    RunTimes& times = node_.function(id).run_times;
    times.of(ImageSource::kResident).Add(milliseconds(20));
    times.of(ImageSource::kHost).Add(milliseconds(30));
    times.of(ImageSource::kPeer).Add(milliseconds(22));
    times.transfer.Add(milliseconds(25));
  }
  void Put(std::uint64_t id, int gpu) {
    node_.instance(id).image.copies[kGpus[gpu]] = {.state = Copy::State::kPresent, .bytes = 300};
    node_.node().gpus[kGpus[gpu]].used += 300;
  }
  // Its image comes from the host, for a run that began at `since`.
  void Load(std::uint64_t id, int gpu, TimePoint since = {}) {
    Gpu& at = node_.node().gpus[kGpus[gpu]];
    at.loading = InstanceId{id};
    at.loading_since = since;
  }
  // A run that takes 20 ms since `since`.
  void Run(std::uint64_t id, int gpu, TimePoint since) {
    node_.node().gpus[kGpus[gpu]].tenant = InstanceId{id};
    node_.instance(id).tenancy.run_since = since;
  }
  std::optional<int> Choose(PlacementPolicy& policy, std::uint64_t id, const std::set<int>& free,
                            TimePoint now = {}) {
    std::vector<GpuIndex> candidates;
    candidates.reserve(free.size());
    for (const int gpu : free) candidates.push_back(kGpus[gpu]);
    const auto chosen = policy.Choose(node_.instance(id), candidates, node_.node(), now);
    return chosen ? std::optional(chosen->value) : std::nullopt;
  }

  WaitingNode node_;
  const std::unique_ptr<PlacementPolicy> aware_ = MakeInterferenceAwarePlacement();
  const std::unique_ptr<PlacementPolicy> ahead_ = MakeLookAheadPlacement();
};

TEST_F(PlacementTest, WhereTheImageIs) {
  Put(1, 2);
  EXPECT_EQ(Choose(*aware_, 1, {0, 1, 2, 3}), 2);
  EXPECT_EQ(Choose(*ahead_, 1, {0, 1, 2, 3}), 2);
}

TEST_F(PlacementTest, OfSeveralCopiesOneThatIsNotBehind) {
  Put(1, 0);
  Put(1, 2);
  node_.node().gpus[kGpus[2]].free_since = TimePoint(milliseconds(5));
  EXPECT_EQ(Choose(*aware_, 1, {0, 1, 2, 3}), 0);
  EXPECT_EQ(Choose(*ahead_, 1, {0, 1, 2, 3}), 0);
  node_.instance(1).image.copies.at(kGpus[2]).is_unsaved = true;
  EXPECT_EQ(Choose(*aware_, 1, {0, 1, 2, 3}), 2);
  EXPECT_EQ(Choose(*ahead_, 1, {0, 1, 2, 3}), 2);
  EXPECT_EQ(Choose(*aware_, 1, {0, 1, 3}), 0) << "rather than none";
}

TEST_F(PlacementTest, ElseOverTheFastestLink) {
  Put(1, 2);
  EXPECT_EQ(Choose(*aware_, 1, {0, 1, 3}), 1);
  EXPECT_EQ(Choose(*aware_, 1, {0, 3}), 3);
}

TEST_F(PlacementTest, ElseWhereNobodyOrALightFunctionLoads) {
  Load(2, 0);
  EXPECT_EQ(Choose(*aware_, 1, {1, 3}), 3);
  EXPECT_EQ(Choose(*ahead_, 1, {1, 3}), 3);
  Load(3, 2);
  for (int i = 0; i < 7; ++i)
    node_.function(3).run_times.of(ImageSource::kHost).Add(milliseconds(21));
  EXPECT_EQ(Choose(*aware_, 1, {1, 3}), 3);
}

TEST_F(PlacementTest, OfThoseAlikeTheOneFreeForLongest) {
  for (const int gpu : {0, 1, 2, 3}) {
    node_.node().gpus[kGpus[gpu]].free_since = TimePoint(milliseconds(10 - gpu));
  }
  EXPECT_EQ(Choose(*aware_, 1, {0, 1, 2, 3}), 3);
  EXPECT_EQ(Choose(*aware_, 1, {0, 1}), 1);
}

TEST_F(PlacementTest, AheadAvoidsWhatWouldEvictMuch) {
  node_.node().gpus[kGpus[0]].used = 1000;
  EXPECT_EQ(Choose(*ahead_, 1, {0, 2}), 2);
}

TEST_F(PlacementTest, AheadMindsHowLongALoadStillTakes) {
  const TimePoint now(milliseconds(20));
  Load(2, 0, now);
  Load(3, 2, now - milliseconds(20));
  EXPECT_EQ(Choose(*ahead_, 1, {1, 3}, now), 3);
}

TEST_F(PlacementTest, AheadWaitsForABusyGpuWhereThatIsCheaper) {
  const TimePoint now(milliseconds(20));
  Put(1, 2);
  node_.Wait(1, now, now + milliseconds(80));
  Run(2, 2, now - milliseconds(18));
  EXPECT_EQ(Choose(*ahead_, 1, {0, 1, 3}, now), std::nullopt);
  EXPECT_NE(Choose(*aware_, 1, {0, 1, 3}, now), std::nullopt);
  // The run there has only begun: the other way costs less.
  Run(2, 2, now);
  EXPECT_NE(Choose(*ahead_, 1, {0, 1, 3}, now), std::nullopt);
}

TEST_F(PlacementTest, AheadDoesNotWaitForARunThatTakesLongerThanItShould) {
  const TimePoint now(milliseconds(100));
  Put(1, 2);
  node_.Wait(1, now, now + milliseconds(500));
  Run(2, 2, now - milliseconds(21));
  EXPECT_NE(Choose(*ahead_, 1, {0, 1, 3}, now), std::nullopt);
}

TEST_F(PlacementTest, AheadDoesNotWaitThatUsesUpTheTime) {
  const TimePoint now(milliseconds(20));
  Put(1, 2);
  node_.Wait(1, now, now + milliseconds(23));
  Run(2, 2, now - milliseconds(18));
  EXPECT_NE(Choose(*ahead_, 1, {0, 1, 3}, now), std::nullopt);
}

TEST_F(PlacementTest, RandomTakesAnyButTheOneWithTheImage) {
  const std::unique_ptr<PlacementPolicy> policy = MakeRandomPlacement(1);
  std::set<std::optional<int>> chosen;
  for (int i = 0; i < 100; ++i) chosen.insert(Choose(*policy, 1, {0, 1, 3}));
  EXPECT_EQ(chosen.size(), 3u);
  Put(1, 3);
  EXPECT_EQ(Choose(*policy, 1, {0, 1, 3}), 3);
}

}  // namespace
}  // namespace torpor::scheduler
