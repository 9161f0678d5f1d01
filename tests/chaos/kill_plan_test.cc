#include "tests/chaos/kill_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <tuple>

namespace torpor::chaos {
namespace {

using testing::AllOf;
using testing::Gt;
using testing::HasSubstr;
using testing::Lt;

const std::vector<Victim> kAll = {Victim::kExecutor, Victim::kFunction, Victim::kTorpord};

std::vector<Kill> KillsOf(unsigned seed, const std::vector<Victim>& victims, int count) {
  KillPlan plan(seed, victims);
  std::vector<Kill> kills;
  kills.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) kills.push_back(plan.Next());
  return kills;
}

TEST(KillPlan, ASeedIsAPlan) {
  const auto written = [](const Kill& kill) {
    return std::tuple(kill.victim, kill.which, kill.is_after_recovery, kill.pause);
  };
  const auto kills = KillsOf(7, kAll, 100);
  const auto again = KillsOf(7, kAll, 100);
  const auto others = KillsOf(8, kAll, 100);
  int differences = 0;
  for (std::size_t i = 0; i < kills.size(); ++i) {
    EXPECT_EQ(written(kills[i]), written(again[i])) << i;
    differences += written(kills[i]) != written(others[i]) ? 1 : 0;
  }
  EXPECT_GT(differences, 90);
}

TEST(KillPlan, EveryVictimHasItsShareAndATenthComesDuringARecovery) {
  std::map<Victim, int> victims;
  int during = 0;
  for (const Kill& kill : KillsOf(1, kAll, 3000)) {
    ++victims[kill.victim];
    during += kill.is_after_recovery ? 0 : 1;
  }
  for (const Victim victim : kAll) EXPECT_THAT(victims[victim], AllOf(Gt(900), Lt(1100)));
  EXPECT_THAT(during, AllOf(Gt(300), Lt(450)));
}

TEST(KillPlan, NobodyElseIsKilled) {
  for (const Kill& kill : KillsOf(3, {Victim::kTorpord}, 200)) {
    EXPECT_EQ(kill.victim, Victim::kTorpord);
  }
}

TEST(KillPlan, NothingHasToRecoverBeforeTheFirst) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    EXPECT_TRUE(KillsOf(seed, kAll, 1)[0].is_after_recovery);
  }
}

TEST(KillPlan, NamesAreReadBack) {
  for (const Victim victim : {Victim::kExecutor, Victim::kFunction, Victim::kTorpord,
                              Victim::kSpare, Victim::kPoolOwner, Victim::kRouter}) {
    EXPECT_EQ(VictimOf(NameOf(victim)).value(), victim);
  }
  EXPECT_THAT(VictimOf("tropord").status().message(), HasSubstr("tropord"));
}

}  // namespace
}  // namespace torpor::chaos
