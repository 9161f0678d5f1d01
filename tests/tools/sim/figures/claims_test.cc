#include "tools/sim/figures/claims.h"

#include <gtest/gtest.h>

namespace torpor::sim {
namespace {

std::vector<Json> Rows() {
  return {{{"system", "torpor"}, {"functions", 160}, {"arrivals", "artifact"}, {"ratio", 0.9}},
          {{"system", "lru"}, {"functions", 160}, {"arrivals", "artifact"}, {"ratio", 0.5}}};
}

void AddClaims(Claims& claims) {
  const auto ratio = [&](const char* system) {
    return claims.Of(system, {{"functions", 160}}, "ratio");
  };
  claims.Check(
      "torpor complies", ratio("torpor"), [](double value) { return value == 1; }, 2, " of 1");
  claims.Compare(
      "torpor above lru", ratio("torpor"), ratio("lru"), [](double a, double b) { return a > b; },
      1);
  claims.Check(
      "fifo complies", ratio("fifo"), [](double) { return true; }, 0);
}

TEST(Claims, OfTheRowsThatThereAre) {
  const std::vector<Finding> findings = FindingsOf(AddClaims)(Rows());
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].claim, "torpor complies, artifact arrivals");
  EXPECT_EQ(findings[0].ours, "0.90 of 1");
  EXPECT_FALSE(findings[0].holds);
  EXPECT_EQ(findings[1].ours, "0.9 against 0.5");
  EXPECT_TRUE(findings[1].holds);
}

}  // namespace
}  // namespace torpor::sim
