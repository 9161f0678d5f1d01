#include <gtest/gtest.h>

#include <algorithm>

#include "tests/scheduler/waiting_node.h"

namespace torpor::scheduler {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr GpuIndex kHere{0};
constexpr GpuIndex kThere{1};

class EvictionTest : public testing::Test {
 protected:
  EvictionTest() : node_(MakeFifoQueue()) {}

  void Add(std::uint64_t id, TimePoint last_used, Duration resident, Duration from_host,
           Bytes bytes = 100) {
    node_.AddFunction(id);
    node_.function(id).run_times.of(ImageSource::kResident).Add(resident);
    node_.function(id).run_times.of(ImageSource::kHost).Add(from_host);
    Instance& instance = node_.instance(id);
    instance.image.last_used = last_used;
    instance.image.bytes = bytes;
    instance.image.copies[kHere].state = Copy::State::kPresent;
    ids_.push_back(id);
  }

  std::vector<std::uint64_t> Order(const EvictionPolicy& policy) {
    std::vector<std::uint64_t> order = ids_;
    std::stable_sort(order.begin(), order.end(), [&](std::uint64_t a, std::uint64_t b) {
      return policy.Rank(node_.instance(a), kHere, node_.node()) <
             policy.Rank(node_.instance(b), kHere, node_.node());
    });
    return order;
  }

  WaitingNode node_;
  std::vector<std::uint64_t> ids_;
};

using Ids = std::vector<std::uint64_t>;

TEST_F(EvictionTest, LeastRecentlyUsed) {
  for (const std::uint64_t id : {1, 2, 3}) {
    Add(id, TimePoint(seconds(10 - id)), milliseconds(10), milliseconds(10 * id));
  }
  EXPECT_EQ(Order(*MakeLruEviction()), (Ids{3, 2, 1}));
}

TEST_F(EvictionTest, ReplicasThenLightThenLeastRecentlyUsed) {
  Add(1, TimePoint(seconds(1)), milliseconds(10), milliseconds(20));
  Add(2, TimePoint(seconds(2)), milliseconds(10), milliseconds(12));
  Add(3, TimePoint(seconds(3)), milliseconds(10), milliseconds(11));
  Add(4, TimePoint(seconds(4)), milliseconds(10), milliseconds(20));
  node_.instance(4).image.copies[kThere].state = Copy::State::kPresent;
  EXPECT_EQ(Order(*MakeHeavinessEviction()), (Ids{4, 2, 3, 1}));
  node_.instance(4).image.copies[kThere].state = Copy::State::kLeaving;
  EXPECT_EQ(Order(*MakeHeavinessEviction()), (Ids{2, 3, 1, 4}));
}

TEST_F(EvictionTest, WhatIsNotKnownIsHeavy) {
  Add(1, TimePoint(seconds(1)), milliseconds(10), milliseconds(20));
  Add(2, TimePoint(seconds(2)), milliseconds(10), milliseconds(11));
  node_.AddFunction(3);
  node_.instance(3).image.copies[kHere].state = Copy::State::kPresent;
  ids_.push_back(3);
  EXPECT_EQ(Order(*MakeHeavinessEviction()), (Ids{2, 3, 1}));
}

TEST_F(EvictionTest, LeastExpectedCostByTimeAndSizeAndUse) {
  // The same use: 10 ms for 100 bytes, 10 ms for 200, 1 ms for 100.
  Add(1, {}, milliseconds(10), milliseconds(20), 100);
  Add(2, {}, milliseconds(10), milliseconds(20), 200);
  Add(3, {}, milliseconds(10), milliseconds(11), 100);
  for (const std::uint64_t id : ids_) node_.instance(id).image.log_use = 5;
  EXPECT_EQ(Order(*MakeExpectedCostEviction()), (Ids{3, 2, 1}));
  node_.instance(3).image.log_use = 9;
  EXPECT_EQ(Order(*MakeExpectedCostEviction()), (Ids{2, 1, 3}));
  node_.instance(1).image.copies[kThere].state = Copy::State::kPresent;
  EXPECT_EQ(Order(*MakeExpectedCostEviction()), (Ids{1, 2, 3}));
}

}  // namespace
}  // namespace torpor::scheduler
