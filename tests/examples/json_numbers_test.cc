#include "examples/service/json_numbers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace torpor::examples {
namespace {

using testing::ElementsAre;

TEST(ParseNumbersTest, FlattensNestedArrays) {
  const auto members = ParseNumbers(R"( {"images": [[0, 1.5], [-2e1]], "label": 7, "none":[]} )");
  ASSERT_TRUE(members.has_value());
  EXPECT_THAT(members->at("images"), ElementsAre(0, 1.5, -20));
  EXPECT_THAT(members->at("label"), ElementsAre(7));
  EXPECT_TRUE(members->at("none").empty());
}

TEST(ParseNumbersTest, RefusesWhatIsNoObjectOfNumbers) {
  for (const char* text : {"", "{", "[1]", R"({"a":})", R"({"a":"b"})", R"({"a":[1,]})",
                           R"({"a":1} x)", R"({"a":1,})", R"({"a" 1})", R"({"a:1})"}) {
    EXPECT_FALSE(ParseNumbers(text).has_value()) << text;
  }
}

TEST(ParseNumbersTest, RefusesBottomlessNesting) {
  EXPECT_FALSE(ParseNumbers(R"({"a":)" + std::string(100'000, '[')).has_value());
}

TEST(FormatNumbersTest, KeepsTheDigitsAskedFor) {
  const float values[] = {1, -0.25F, 3.14159F};
  EXPECT_EQ(FormatNumbers(values, 3, 3), "[1.000,-0.250,3.142]");
  EXPECT_EQ(FormatNumbers(values, 0, 3), "[]");
}

}  // namespace
}  // namespace torpor::examples
