#include "tests/chaos/chaos_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace torpor::chaos {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// Sets variables for a test.
class ChaosRunTest : public testing::Test {
 protected:
  void TearDown() override {
    for (const char* const name : {"CHAOS_SECONDS", "CHAOS_SEED", "CHAOS_KILLS", "CHAOS_VICTIMS"}) {
      unsetenv(name);
    }
  }
  static void Set(const char* name, const char* value) { setenv(name, value, 1); }
};

TEST_F(ChaosRunTest, IsWhatTheEnvironmentSays) {
  Set("CHAOS_SECONDS", "90");
  Set("CHAOS_SEED", "7");
  Set("CHAOS_KILLS", "50");
  Set("CHAOS_VICTIMS", "torpord,function");
  const auto run = ChaosRun::FromEnvironment();
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->length, std::chrono::seconds(90));
  EXPECT_EQ(run->seed, 7U);
  EXPECT_EQ(run->max_kills, 50U);
  EXPECT_THAT(run->victims, ElementsAre(Victim::kTorpord, Victim::kFunction));
}

TEST_F(ChaosRunTest, TheRouterIsAVictimOnlyIfNamed) {
  EXPECT_THAT(ChaosRun::FromEnvironment()->victims, Not(Contains(Victim::kRouter)));
  Set("CHAOS_VICTIMS", "router");
  EXPECT_THAT(ChaosRun::FromEnvironment()->victims, ElementsAre(Victim::kRouter));
}

TEST_F(ChaosRunTest, ABadNumberNamesItsVariable) {
  Set("CHAOS_SECONDS", "60s");
  EXPECT_THAT(ChaosRun::FromEnvironment().status().message(), HasSubstr("CHAOS_SECONDS=60s"));
}

TEST_F(ChaosRunTest, AnUnknownVictimIsNamed) {
  Set("CHAOS_VICTIMS", "executor,gpu");
  EXPECT_THAT(ChaosRun::FromEnvironment().status().message(), HasSubstr("\"gpu\""));
}

}  // namespace
}  // namespace torpor::chaos
