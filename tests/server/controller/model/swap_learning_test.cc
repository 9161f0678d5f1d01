#include "server/controller/model/swap_learning.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "server/controller/model/extents.h"

namespace torpor::server {
namespace {

class SwapLearningTest : public testing::Test {
 protected:
  std::vector<Bytes> Planned() {
    google::protobuf::RepeatedPtrField<v1::Allocation> plan;
    learning_.Plan(allocations_, growth_, plan);
    std::vector<Bytes> offsets;
    for (const v1::Allocation& allocation : plan) offsets.push_back(allocation.offset());
    return offsets;
  }
  void RunLease(const std::vector<Bytes>& touched) {
    learning_.BeginLease();
    v1::Learned learned;
    for (const Bytes offset : touched) learned.add_touched(offset);
    learning_.EndLease(learned, /*is_explicit=*/true);
  }

  memory::RangeAllocator allocations_{64 * kMiB, 2 * kMiB};
  Bytes first_ = allocations_.Allocate(2 * kMiB)->offset;
  Bytes second_ = allocations_.Allocate(2 * kMiB)->offset;
  memory::Block growth_;  // awaits the scheduler's answer
  SwapLearning learning_;
};

TEST_F(SwapLearningTest, PlansInTheOrderOfTouch) {
  EXPECT_EQ(Planned(), (std::vector{first_, second_}));
  RunLease({second_, first_});
  EXPECT_EQ(Planned(), (std::vector{second_, first_}));
}

TEST_F(SwapLearningTest, LeavesOutMemoryThatNoGpuHasRoomFor) {
  growth_ = *allocations_.Allocate(2 * kMiB);
  EXPECT_EQ(Planned(), (std::vector{first_, second_}));
  growth_ = {};
  EXPECT_EQ(Planned().size(), 3u);
}

TEST_F(SwapLearningTest, LeavesSuchMemoryOutOfJoinedPiecesToo) {
  for (std::size_t i = 0; i < kMaxPiecesSent; ++i) allocations_.Allocate(512);
  growth_ = {second_, 2 * kMiB};
  const std::vector<Bytes> planned = Planned();
  EXPECT_EQ(planned.at(0), first_);
  EXPECT_EQ(std::ranges::count(planned, second_), 0);
}

TEST_F(SwapLearningTest, AsksForTheOrderUntilLeasesAgree) {
  EXPECT_TRUE(learning_.BeginLease());
  for (int i = 0; i < 1 + memory::SwapHistory::kAgreements; ++i) RunLease({second_, first_});
  EXPECT_FALSE(learning_.BeginLease());
}

TEST_F(SwapLearningTest, LooksAtAllUntilTheHoldersOfAddressesAreKnown) {
  EXPECT_TRUE(learning_.should_search_whole_image());
  v1::Learned learned;
  learned.add_address_holders(second_);
  learned.set_searched_whole_image(true);
  learning_.OnSwapOut(learned);
  EXPECT_FALSE(learning_.should_search_whole_image());
  google::protobuf::RepeatedPtrField<v1::Allocation> plan;
  learning_.Plan(allocations_, growth_, plan);
  EXPECT_FALSE(plan.at(0).holds_addresses());
  EXPECT_TRUE(plan.at(1).holds_addresses());
  learning_.OnUnseenChanges();
  EXPECT_TRUE(learning_.should_search_whole_image());
}

TEST_F(SwapLearningTest, TooManyHoldersToNameAreUnknown) {
  v1::Learned learned;
  learned.set_searched_whole_image(true);
  learning_.OnSwapOut(learned);
  learned.set_too_many_holders(true);
  learning_.OnSwapOut(learned);
  EXPECT_TRUE(learning_.should_search_whole_image());
}

}  // namespace
}  // namespace torpor::server
