#include "scheduler/growths.h"

#include "tests/scheduler/parts_test.h"

namespace torpor::scheduler {
namespace {

class GrowthsTest : public PartsTest {
 protected:
  GrowthsTest() : GrowthsTest(Setting{}) {}
  explicit GrowthsTest(Setting setting) : PartsTest(std::move(setting)) {
    AddGpu(kHere, 100);
    Put(Add(1, 60), kHere);
  }
  void Want(std::uint64_t growth, Bytes bytes) {
    growths_.Add({GrowthId{growth}, InstanceId{1}, bytes});
    growths_.Retry();
  }

  Growths growths_{node_, *binding_, queue_, images_, outbox_};
};

TEST_F(GrowthsTest, AnImageGrowsIntoFreeRoom) {
  Want(1, 40);
  EXPECT_EQ(Only<AllowGrowth>()->growth, GrowthId{1});
  EXPECT_EQ(instance(1).image.bytes, 100u);
  EXPECT_EQ(gpu(kHere).used, 100u);
}

TEST_F(GrowthsTest, WhatFitsNoGpuIsRefused) {
  Want(1, 41);
  EXPECT_EQ(Only<RefuseGrowth>()->growth, GrowthId{1});
}

TEST_F(GrowthsTest, ATenantsGrowthWaitsForEvictions) {
  instance(1).tenancy.phase = Phase::kLeased;
  instance(1).tenancy.gpu = kHere;
  images_.Rank(instance(1));
  Put(Add(2, 30), kHere);
  Want(1, 40);
  EXPECT_EQ(Only<SwapOut>()->instance, InstanceId{2});
  images_.Drop(instance(2), kHere);
  growths_.Retry();
  EXPECT_TRUE(Only<AllowGrowth>());
}

TEST_F(GrowthsTest, AnImageThatNobodyUsesLeavesRatherThanEvict) {
  Put(Add(2, 30), kHere);
  Want(1, 40);
  const Actions actions = outbox_.Take();
  ASSERT_EQ(actions.size(), 2u);
  EXPECT_EQ(std::get<SwapOut>(actions[0]).instance, InstanceId{1});
  EXPECT_TRUE(std::holds_alternative<AllowGrowth>(actions[1]));
  EXPECT_EQ(gpu(kHere).used, 90u);  // of the size it leaves with
}

class GrowthsWithoutEvictionTest : public GrowthsTest {
 protected:
  GrowthsWithoutEvictionTest() : GrowthsTest({.images = {.evicts = false}}) {}
};

TEST_F(GrowthsWithoutEvictionTest, WithoutEvictionATenantIsRefusedWhatIsNotFree) {
  instance(1).tenancy.phase = Phase::kLeased;
  instance(1).tenancy.gpu = kHere;
  Put(Add(2, 30), kHere);
  Want(1, 40);
  EXPECT_TRUE(Only<RefuseGrowth>());
}

// Before the first GPU serves.
class EarlyGrowthsTest : public PartsTest {
 protected:
  Growths growths_{node_, *binding_, queue_, images_, outbox_};
};

TEST_F(EarlyGrowthsTest, ImagesOfAnEarlierDaemonAreAsLargeAsTheyWere) {
  Add(1, 0);
  growths_.Add({GrowthId{1}, InstanceId{1}, 500});
  growths_.Retry();
  EXPECT_EQ(Only<AllowGrowth>()->growth, GrowthId{1});
  EXPECT_EQ(instance(1).image.bytes, 500u);
}

}  // namespace
}  // namespace torpor::scheduler
