#include "tests/chaos/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

namespace torpor::chaos {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::Not;

ChaosResult Result() {
  ChaosResult result;
  result.seconds = 60;
  result.requests = {.right = 100, .excused = 3};
  result.delays[Victim::kExecutor] = {.kills = 2,
                                      .overlapped = 1,
                                      .waits = {milliseconds(20), milliseconds(80)},
                                      .recoveries = {milliseconds(90)}};
  result.growths["threads"] = {.first = 10, .last = 30, .limit = 20};
  return result;
}

TEST(Report, TheTableTellsWaitsAndWhoGrows) {
  const std::string table = TableOf(Result());
  EXPECT_THAT(table, HasSubstr("100 right answers in 60 s, 0 wrong, 0 failed"));
  EXPECT_THAT(table, HasSubstr("executor      2            1             20   80       80"));
  EXPECT_THAT(table, HasSubstr("GROWS"));
}

TEST(Report, TheTableTellsWhatKilledRoutersHaveNotAnswered) {
  ChaosResult result = Result();
  EXPECT_THAT(TableOf(result), Not(HasSubstr("router")));
  result.requests.unanswered = 5;
  result.requests.done = 2;
  result.requests.refused = 7;
  EXPECT_THAT(TableOf(result), HasSubstr("5 requests got no answer from a killed router, of which "
                                         "2 had been carried out; 7 tries found no router"));
}

TEST(Report, TheJsonHasTheVerdict) {
  const auto json = JsonOf({.seed = 7}, Result());
  EXPECT_EQ(json.at("seed"), 7);
  EXPECT_EQ(json.at("kills").at("executor").at("wait_ms").at("longest"), 80);
  EXPECT_EQ(json.at("faults").size(), 1U);
}

}  // namespace
}  // namespace torpor::chaos
