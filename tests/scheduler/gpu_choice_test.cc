#include "scheduler/gpu_choice.h"

#include "tests/scheduler/parts_test.h"

namespace torpor::scheduler {
namespace {

class GpuChoiceTest : public PartsTest {
 protected:
  GpuChoiceTest() {
    AddGpu(kHere, 100);
    AddGpu(kThere, 100);
  }

  GpuChoice choice_{node_, *binding_, *placement_, true};
  GpuChoice without_eviction_{node_, *binding_, *placement_, false};
};

TEST_F(GpuChoiceTest, RoomDecidesWhereNothingIsEvicted) {
  Instance& instance = Add(1, 60);
  Put(Add(2, 60), kHere);
  EXPECT_TRUE(choice_.MayRunOn(instance, gpu(kHere)));
  EXPECT_FALSE(without_eviction_.MayRunOn(instance, gpu(kHere)));
  EXPECT_TRUE(without_eviction_.MayRunOn(instance, gpu(kThere)));
  EXPECT_TRUE(without_eviction_.MayRunAnywhere(instance));
  Put(Add(3, 60), kThere);
  EXPECT_FALSE(without_eviction_.MayRunAnywhere(instance));
  EXPECT_TRUE(choice_.MayRunAnywhere(instance));
}

TEST_F(GpuChoiceTest, EveryShardGetsAGpuOfItsOwnOrNoneGetsAny) {
  Instance& lead = Add(1, 60, 1);
  EXPECT_EQ(choice_.Choose(lead, {}, {}).gpus.size(), 2u);
  EXPECT_TRUE(choice_.Choose(lead, {kHere}, {}).gpus.empty());
  gpu(kThere).tenant = InstanceId{9};
  EXPECT_TRUE(choice_.Choose(lead, {}, {}).gpus.empty());
}

TEST_F(GpuChoiceTest, AShardIsNotDrivenFromItsGpu) {
  Instance& lead = Add(1, 60, 1);
  Put(instance(2), kHere);
  const GpuChoice::Chosen chosen = choice_.Choose(lead, {}, {});
  ASSERT_EQ(chosen.gpus.size(), 2u);
  EXPECT_EQ(chosen.gpus[0], (std::pair{&instance(2), kHere}));
  EXPECT_EQ(chosen.gpus[1], (std::pair{&instance(1), kThere}));
}

TEST_F(GpuChoiceTest, GpusWithImplicitLeasesAreOpen) {
  Instance& tenant = Add(1, 60);
  gpu(kHere).tenant = tenant.id;
  tenant.tenancy.phase = Phase::kLeased;
  EXPECT_EQ(choice_.OpenGpus({}), std::vector<GpuIndex>{kThere});
  tenant.tenancy.is_implicit = true;
  EXPECT_EQ(choice_.OpenGpus({}), (std::vector<GpuIndex>{kHere, kThere}));
  EXPECT_EQ(choice_.OpenGpus({kHere}), std::vector<GpuIndex>{kThere});
}

// A placement that always wants to wait.
class Waiting final : public PlacementPolicy {
 public:
  std::optional<GpuIndex> Choose(const Instance&, const std::vector<GpuIndex>&, const NodeState&,
                                 TimePoint) override {
    return std::nullopt;
  }
};

TEST_F(GpuChoiceTest, WaitingByChoiceIsToldFromHavingNoGpu) {
  Waiting placement;
  GpuChoice choice(node_, *binding_, placement, true);
  EXPECT_TRUE(choice.Choose(Add(1, 60), {}, {}).is_waiting_better);
  EXPECT_FALSE(choice.Choose(instance(1), {kHere, kThere}, {}).is_waiting_better);
}

}  // namespace
}  // namespace torpor::scheduler
