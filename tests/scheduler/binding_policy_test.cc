#include "scheduler/binding_policy.h"

#include "tests/scheduler/parts_test.h"

namespace torpor::scheduler {
namespace {

class BindingPolicyTest : public PartsTest {
 protected:
  BindingPolicyTest() {
    AddGpu(kHere, 100);
    AddGpu(kThere, 120);
  }
};

TEST_F(BindingPolicyTest, LateBindingLeavesAllToTheRoom) {
  const auto binding = MakeLateBinding();
  Instance& instance = Add(1, 10);
  EXPECT_FALSE(binding->binds());
  EXPECT_FALSE(binding->MayRunOn(instance, gpu(kHere)));
  EXPECT_TRUE(binding->MayGrow(instance, 1000, node_));
  EXPECT_FALSE(binding->OnGrowing(instance, 10, node_));
  EXPECT_FALSE(binding->IsCold(instance));
}

TEST_F(BindingPolicyTest, EarlyBindingGoesToTheRoomiestGpuForEver) {
  const auto binding = MakeEarlyBinding();
  Instance& first = Add(1, 0);
  first.bound_gpu = binding->OnGrowing(first, 50, node_);
  first.image.bytes = 50;
  EXPECT_EQ(first.bound_gpu, kThere);
  Instance& second = Add(2, 0);
  EXPECT_EQ(binding->OnGrowing(second, 10, node_), kHere);
  EXPECT_EQ(binding->MayRunOn(first, gpu(kHere)), false);
  EXPECT_EQ(binding->MayRunOn(first, gpu(kThere)), true);
  EXPECT_EQ(binding->OnLeft(first), kThere);
}

TEST_F(BindingPolicyTest, EarlyBindingCountsWhatIsBound) {
  const auto binding = MakeEarlyBinding();
  Instance& first = Add(1, 0);
  first.bound_gpu = binding->OnGrowing(first, 100, node_);
  first.image.bytes = 100;
  EXPECT_TRUE(binding->MayGrow(first, 20, node_));
  EXPECT_FALSE(binding->MayGrow(first, 21, node_));
  binding->OnShrunk(first, 40);
  EXPECT_TRUE(binding->MayGrow(first, 60, node_));
}

TEST_F(BindingPolicyTest, EarlyBindingKeepsShardsApart) {
  const auto binding = MakeEarlyBinding();
  Instance& lead = Add(1, 0, 1);
  lead.bound_gpu = binding->OnGrowing(lead, 10, node_);
  EXPECT_EQ(lead.bound_gpu, kThere);
  EXPECT_EQ(binding->OnGrowing(instance(2), 10, node_), kHere);
}

TEST_F(BindingPolicyTest, ResidentBindingLastsWhileTheImageIsThere) {
  const auto binding = MakeResidentBinding();
  Instance& instance = Add(1, 10);
  EXPECT_TRUE(binding->IsCold(instance));
  EXPECT_FALSE(binding->MayRunOn(instance, gpu(kHere)));
  EXPECT_EQ(binding->OnArriving(instance, kHere), kHere);
  Put(instance, kHere);
  EXPECT_FALSE(binding->IsCold(instance));
  EXPECT_EQ(binding->MayRunOn(instance, gpu(kHere)), true);
  EXPECT_EQ(binding->MayRunOn(instance, gpu(kThere)), false);
  EXPECT_FALSE(binding->OnLeft(instance));
}

TEST_F(BindingPolicyTest, ResidentBindingStartsNoPairAheadOfItsRequests) {
  const auto binding = MakeResidentBinding();
  Add(1, 10, 1);
  EXPECT_FALSE(binding->IsCold(instance(1)));
  EXPECT_FALSE(binding->OnArriving(instance(1), kHere));
}

}  // namespace
}  // namespace torpor::scheduler
