#include "memory/swap_history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace torpor::memory {
namespace {

using ::testing::ElementsAre;

constexpr bool kRequest = true;
constexpr bool kWhole = true;

const std::vector<Extent> kAllocations = {{0, 10}, {20, 30}, {40, 50}};

std::vector<Bytes> OffsetsOf(const std::vector<SwapAllocation>& plan) {
  std::vector<Bytes> offsets;
  offsets.reserve(plan.size());
  for (const SwapAllocation& allocation : plan) offsets.push_back(allocation.extent.begin);
  return offsets;
}

class SwapHistoryTest : public testing::Test {
 protected:
  void Lease(std::vector<Bytes> order, bool is_request = kRequest, bool is_whole = kWhole) {
    history_.OnLease(order, is_request, is_whole);
  }
  std::vector<Bytes> Order() const { return OffsetsOf(history_.Plan(kAllocations)); }

  SwapHistory history_;
};

TEST_F(SwapHistoryTest, AnOrderCountsAsKnownWhenLeasesAgree) {
  EXPECT_TRUE(history_.is_learning());
  Lease({40, 0, 20});
  Lease({40, 0, 20});
  EXPECT_TRUE(history_.is_learning());
  Lease({40, 0, 20});
  EXPECT_FALSE(history_.is_learning());
  EXPECT_THAT(Order(), ElementsAre(40, 0, 20));
}

TEST_F(SwapHistoryTest, TheLatestLeaseIsTheOneThatIsExpectedAgain) {
  Lease({40, 0});
  Lease({20});
  EXPECT_THAT(Order(), ElementsAre(20, 0, 40));
}

TEST_F(SwapHistoryTest, ADepartureFromThePlanMeansLearningAgain) {
  for (int i = 0; i < 3; ++i) Lease({40, 0, 20});
  Lease({40, 0}, kRequest, !kWhole);
  EXPECT_FALSE(history_.is_learning());
  Lease({40, 20}, kRequest, !kWhole);
  EXPECT_TRUE(history_.is_learning());
  EXPECT_THAT(Order(), ElementsAre(40, 0, 20)) << "until another is known";
}

TEST_F(SwapHistoryTest, StartingUpCountsOnlyUntilARequestCame) {
  Lease({20, 40}, !kRequest);
  EXPECT_THAT(Order(), ElementsAre(20, 40, 0));
  Lease({0, 40});
  Lease({20, 40}, !kRequest);
  EXPECT_THAT(Order(), ElementsAre(0, 40, 20));
}

TEST_F(SwapHistoryTest, ALeaseThatTouchesNothingTellsNothing) {
  Lease({40, 0, 20});
  Lease({});
  EXPECT_THAT(Order(), ElementsAre(40, 0, 20));
}

TEST_F(SwapHistoryTest, WhatWasUploadedComesBeforeWhatNobodyUses) {
  Lease({40});
  history_.OnUploaded(std::vector<Bytes>{20});
  EXPECT_THAT(Order(), ElementsAre(40, 20, 0));
  history_.OnFreed(20);
  EXPECT_THAT(Order(), ElementsAre(40, 0, 20));
}

TEST_F(SwapHistoryTest, AllMayHoldAddressesUntilTheyWereLookedAt) {
  EXPECT_THAT(history_.Plan(kAllocations),
              ElementsAre(SwapAllocation{{0, 10}, true}, SwapAllocation{{20, 30}, true},
                          SwapAllocation{{40, 50}, true}));
  history_.OnLookedAt(std::vector<Bytes>{20}, true);
  history_.OnLookedAt(std::vector<Bytes>{40}, false);
  EXPECT_THAT(history_.Plan(kAllocations),
              ElementsAre(SwapAllocation{{0, 10}, false}, SwapAllocation{{20, 30}, true},
                          SwapAllocation{{40, 50}, true}));
  history_.OnLookedAt({}, true);
  history_.OnUnseenChanges();
  EXPECT_TRUE(history_.Plan(kAllocations)[0].holds_addresses);
}

TEST_F(SwapHistoryTest, JoinedAllocationsHoldWhatTheirPartsDo) {
  history_.OnLookedAt(std::vector<Bytes>{20}, true);
  EXPECT_THAT(history_.Plan(std::vector<Extent>{{0, 50}}),
              ElementsAre(SwapAllocation{{0, 50}, true}));
}

}  // namespace
}  // namespace torpor::memory
