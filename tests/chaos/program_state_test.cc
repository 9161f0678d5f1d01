#include "tests/chaos/program_state.h"

#include <gtest/gtest.h>

namespace torpor::chaos {
namespace {

using Finding = ProgramState::Finding;

// One program of each kind.
class ProgramStateTest : public testing::TestWithParam<unsigned> {
 protected:
  ProgramStateTest() { state_.Begin(); }

  // Asks until a request has changed the program. Returns what an inquiry told before.
  std::string AskForAChange() {
    for (;;) {
      std::string before = state_.Inquiry().answer;
      (void)state_.Next(random_);
      if (state_.Inquiry().answer != before) return before;
    }
  }

  ProgramState state_{MakeProgram(GetParam(), /*has_pointers=*/true)};
  std::mt19937 random_{7};
};

TEST_P(ProgramStateTest, ARequestInDoubtWasDone) {
  AskForAChange();
  const std::string answer = state_.Inquiry().answer;
  state_.Doubt();
  EXPECT_TRUE(state_.is_in_doubt());
  EXPECT_EQ(state_.Resolve(answer), Finding::kDone);
  EXPECT_FALSE(state_.is_in_doubt());
  EXPECT_EQ(state_.Inquiry().answer, answer);
}

TEST_P(ProgramStateTest, ARequestInDoubtWasNotDone) {
  const std::string before = AskForAChange();
  state_.Doubt();
  EXPECT_EQ(state_.Resolve(before), Finding::kNotDone);
  EXPECT_FALSE(state_.is_in_doubt());
  EXPECT_EQ(state_.Inquiry().answer, before);
}

TEST_P(ProgramStateTest, AnAnswerOfNeitherStateIsImpossible) {
  AskForAChange();
  state_.Doubt();
  EXPECT_EQ(state_.Resolve("{\"sum\":1}\n"), Finding::kImpossible);
  EXPECT_TRUE(state_.is_in_doubt());
}

TEST_P(ProgramStateTest, ARequestThatIsTakenBackHasChangedNothing) {
  const std::string before = AskForAChange();
  state_.TakeBack();
  EXPECT_EQ(state_.Inquiry().answer, before);
}

TEST_P(ProgramStateTest, ANewProcessIsInNoDoubt) {
  const std::string begin = state_.Inquiry().answer;
  AskForAChange();
  state_.Doubt();
  state_.Begin();
  EXPECT_FALSE(state_.is_in_doubt());
  EXPECT_EQ(state_.Inquiry().answer, begin);
}

INSTANTIATE_TEST_SUITE_P(OfEachKind, ProgramStateTest, testing::Values(0U, 1U, 2U));

}  // namespace
}  // namespace torpor::chaos
