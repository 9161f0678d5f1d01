#include "emulator/node/strictness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace torpor::emulator {
namespace {

using testing::HasSubstr;

std::string ProblemOf(std::string_view text) {
  const auto strict = ParseStrictness(text);
  return strict.ok() ? "" : strict.failure().message;
}

TEST(StrictnessTest, TheDriverForgivesUnlessToldOtherwise) {
  EXPECT_EQ(*ParseStrictness(""), Strictness());
  EXPECT_EQ(*ParseStrictness("false"), Strictness());
}

TEST(StrictnessTest, TrueSetsEveryPoint) {
  const Strictness strict = *ParseStrictness("true");
  EXPECT_EQ(strict, Strictness::All());
  EXPECT_TRUE(strict.host_registrations && strict.hidden_faults && strict.memory_overheads &&
              strict.log_failures && strict.costs && strict.launch_queues);
  EXPECT_EQ(strict.addresses, AddressHints::kHonoured);
}

TEST(StrictnessTest, APointIsSetByItself) {
  const Strictness strict = *ParseStrictness("{addresses: elsewhere, costs: true}");
  EXPECT_EQ(strict, (Strictness{.addresses = AddressHints::kElsewhere, .costs = true}));
  EXPECT_EQ(ParseStrictness("{addresses: refused}")->addresses, AddressHints::kRefused);
}

TEST(StrictnessTest, AnythingElseIsAnError) {
  EXPECT_THAT(ProblemOf("very"), HasSubstr("'strict' must be true, false or a mapping of points"));
  EXPECT_THAT(ProblemOf("{addresses: here}"), HasSubstr("honoured, elsewhere or refused"));
  EXPECT_THAT(ProblemOf("{addresses: [1]}"), HasSubstr("honoured, elsewhere or refused"));
  EXPECT_THAT(ProblemOf("{cost: true}"), HasSubstr("cost"));
  EXPECT_THAT(ProblemOf("{costs: 3}"), HasSubstr("costs"));
  EXPECT_THAT(ProblemOf("{"), HasSubstr("TORPOR_EMULATOR_STRICT"));
}

}  // namespace
}  // namespace torpor::emulator
