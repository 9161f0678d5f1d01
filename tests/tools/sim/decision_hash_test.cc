#include "tools/sim/decision_hash.h"

#include <gtest/gtest.h>

namespace torpor::sim {
namespace {

using scheduler::LeaseEnded;
using scheduler::RequestGone;

constexpr TimePoint kNow{Duration(5)};

std::uint64_t HashOf(const scheduler::Event& event, TimePoint now) {
  DecisionHash hash;
  hash.Add(event, now);
  return hash.value();
}

TEST(DecisionHash, TheSameForTheSameEvents) {
  EXPECT_EQ(HashOf(LeaseEnded{InstanceId{3}}, kNow), HashOf(LeaseEnded{InstanceId{3}}, kNow));
}

TEST(DecisionHash, KnowsKindContentAndTime) {
  const std::uint64_t hash = HashOf(LeaseEnded{InstanceId{3}}, kNow);
  EXPECT_NE(hash, HashOf(RequestGone{RequestId{3}}, kNow));
  EXPECT_NE(hash, HashOf(LeaseEnded{InstanceId{4}}, kNow));
  EXPECT_NE(hash, HashOf(LeaseEnded{InstanceId{3}}, kNow + Duration(1)));
}

TEST(DecisionHash, KnowsTheOrder) {
  DecisionHash hash;
  hash.Add(1);
  hash.Add(2);
  DecisionHash other;
  other.Add(2);
  other.Add(1);
  EXPECT_NE(hash.value(), other.value());
}

TEST(DecisionHash, KnowsActions) {
  DecisionHash hash;
  hash.Add(scheduler::Action(scheduler::Revoke{InstanceId{1}}));
  DecisionHash other;
  other.Add(scheduler::Action(scheduler::Revoke{InstanceId{2}}));
  EXPECT_NE(hash.value(), other.value());
}

}  // namespace
}  // namespace torpor::sim
