#include "tests/chaos/judgement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

namespace torpor::chaos {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

ChaosResult Good() {
  ChaosResult result;
  result.requests = {.right = 100, .excused = 3};
  result.delays[Victim::kExecutor].waits = {milliseconds(10), milliseconds(900)};
  result.delays[Victim::kTorpord].waits = {milliseconds(10), milliseconds(2900)};
  result.delays[Victim::kFunction].waits = {milliseconds(10), milliseconds(9000)};
  result.growths["threads"] = {.first = 10, .last = 11, .limit = 20};
  return result;
}

TEST(Judgement, AllMayBeWell) { EXPECT_THAT(Judge(Good(), true), IsEmpty()); }

TEST(Judgement, AWrongAnswerIsOneTooMany) {
  ChaosResult result = Good();
  result.requests.wrong = 1;
  EXPECT_THAT(Judge(result, false), ElementsAre(HasSubstr("1 wrong")));
}

TEST(Judgement, ARequestMayFailOnlyWithItsFunction) {
  ChaosResult result = Good();
  result.requests.failed = 2;
  EXPECT_THAT(Judge(result, false), ElementsAre(HasSubstr("2 requests failed")));
}

TEST(Judgement, ARunWithoutAnswersShowsNothing) {
  ChaosResult result = Good();
  result.requests = {};
  EXPECT_THAT(Judge(result, false), ElementsAre(HasSubstr("no request")));
}

TEST(Judgement, NobodyMayGrow) {
  ChaosResult result = Good();
  result.growths["threads"].last = 30;
  EXPECT_THAT(Judge(result, false), ElementsAre(HasSubstr("threads: grew from 10.0 to 30.0")));
}

TEST(Judgement, DelaysCountWhereTimesAreJudged) {
  ChaosResult result = Good();
  result.delays[Victim::kExecutor].waits = {milliseconds(1100)};
  result.delays[Victim::kTorpord].waits = {milliseconds(3100)};
  EXPECT_THAT(Judge(result, false), IsEmpty());
  EXPECT_THAT(Judge(result, true), ElementsAre(HasSubstr("executor"), HasSubstr("torpord")));
}

TEST(Judgement, NobodyMayWaitVeryLongForTorpord) {
  ChaosResult result = Good();
  result.delays[Victim::kTorpord].waits.assign(200, milliseconds(10));
  result.delays[Victim::kTorpord].waits.back() = milliseconds(5100);
  EXPECT_THAT(Judge(result, true), ElementsAre(HasSubstr("the longest")));
}

}  // namespace
}  // namespace torpor::chaos
