#include "examples/service/program.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <stdexcept>
#include <string>
#include <vector>

namespace torpor::examples {
namespace {

Flags Parse(std::initializer_list<const char*> words) {
  std::vector<std::string> copies(words.begin(), words.end());
  std::vector<char*> arguments;
  arguments.reserve(copies.size());
  for (std::string& copy : copies) arguments.push_back(copy.data());
  return ParseFlags(static_cast<int>(arguments.size()), arguments.data(), "usage: example\n",
                    {{"port", "0"}, {"host", "127.0.0.1"}});
}

TEST(ParseFlagsTest, WhatIsNotNamedKeepsItsValue) {
  const Flags flags = Parse({"example", "--port", "80"});
  EXPECT_EQ(flags.at("port"), "80");
  EXPECT_EQ(flags.at("host"), "127.0.0.1");
}

TEST(ParseFlagsDeathTest, HelpIsNoError) {
  EXPECT_EXIT(Parse({"example", "--help"}), testing::ExitedWithCode(0), "");
}

TEST(ParseFlagsDeathTest, TellsWhatItDoesNotKnow) {
  EXPECT_EXIT(Parse({"example", "--prot", "80"}), testing::ExitedWithCode(2), "--prot");
  EXPECT_EXIT(Parse({"example", "port", "80"}), testing::ExitedWithCode(2), "port");
  EXPECT_EXIT(Parse({"example", "--port"}), testing::ExitedWithCode(2), "--port.*missing value");
}

TEST(IntFlagTest, TakesWholeNumbersInTheRange) {
  EXPECT_EQ(IntFlag({{"port", "8000"}}, "port", 0, 65535), 8000);
}

TEST(IntFlagDeathTest, RefusesTheRest) {
  for (const char* text : {"", "x", "80x", "-1", "65536", "99999999999999999999"}) {
    EXPECT_EXIT(IntFlag({{"port", text}}, "port", 0, 65535), testing::ExitedWithCode(2),
                "0 to 65535");
  }
}

TEST(RunProgramTest, AnExceptionIsStatusOne) {
  EXPECT_EQ(RunProgram(
                "example", [](int, char**) { return 7; }, 0, nullptr),
            7);
  EXPECT_EQ(
      RunProgram(
          "example", [](int, char**) -> int { throw std::runtime_error("no GPU"); }, 0, nullptr),
      1);
}

}  // namespace
}  // namespace torpor::examples
