#include "scheduler/replay.h"

#include <gtest/gtest.h>

#include <random>
#include <sstream>
#include <vector>

#include "tests/scheduler/scheduler_world.h"

namespace torpor::scheduler {
namespace {

std::string LogOf(const std::string& setup, std::uint32_t seed) {
  std::string log;
  std::mt19937 random(seed);
  SchedulerWorld world({.setup = setup, .gpus = 3, .instances = 6, .log = &log},
                       [&] { return static_cast<std::uint32_t>(random()); });
  for (int step = 0; step < 1500; ++step) EXPECT_EQ(world.Step(), "");
  EXPECT_EQ(world.Finish(), "");
  return log;
}

ReplayOutcome ReplayText(const std::string& log) {
  std::istringstream stream(log);
  return Replay(stream);
}

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string TextOf(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + '\n';
  return text;
}

TEST(ReplayTest, TheSameEventsLeadToTheSameDecisions) {
  for (const std::string_view setup : SetupNames()) {
    const std::string log = LogOf(std::string(setup), 5);
    const ReplayOutcome outcome = ReplayText(log);
    EXPECT_TRUE(outcome.is_same()) << setup << ": " << outcome.error;
    EXPECT_GT(outcome.actions, 100u) << setup;
    EXPECT_EQ(1 + outcome.events + outcome.actions, LinesOf(log).size()) << setup;
  }
}

// The number of the first line that begins a grant.
std::size_t FindGrant(const std::vector<std::string>& lines) {
  std::size_t i = lines.size() / 2;
  while (lines.at(i).find(" > grant ") == std::string::npos) ++i;
  return i;
}

TEST(ReplayTest, TheFirstOtherDecisionIsFound) {
  std::vector<std::string> lines = LinesOf(LogOf("torpor", 1));
  const std::size_t at = FindGrant(lines);
  const std::string decided = lines[at];
  lines[at] += "1";
  const ReplayOutcome outcome = ReplayText(TextOf(lines));
  ASSERT_TRUE(outcome.difference);
  EXPECT_EQ(outcome.difference->line, at + 1);
  EXPECT_EQ(outcome.difference->logged, lines[at]);
  EXPECT_EQ(outcome.difference->decided, decided);
}

TEST(ReplayTest, ADecisionTooMuchOrTooFewIsFound) {
  std::vector<std::string> lines = LinesOf(LogOf("torpor", 2));
  const std::size_t at = FindGrant(lines);
  std::vector<std::string> longer = lines;
  longer.insert(longer.begin() + static_cast<std::ptrdiff_t>(at), lines[at]);
  EXPECT_EQ(ReplayText(TextOf(longer)).difference->line, at + 2);
  std::vector<std::string> shorter(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(at));
  const ReplayOutcome outcome = ReplayText(TextOf(shorter));
  ASSERT_TRUE(outcome.difference);
  EXPECT_EQ(outcome.difference->line, at + 1);
  EXPECT_EQ(outcome.difference->logged, "");
  EXPECT_EQ(outcome.difference->decided, lines[at]);
}

TEST(ReplayTest, AnotherPolicyDecidesOtherwise) {
  std::string log = LogOf("torpor", 3);
  log.replace(log.find("policy=torpor"), 13, "policy=random");
  EXPECT_TRUE(ReplayText(log).difference);
}

TEST(ReplayTest, WhatIsNoLogIsSaid) {
  const std::string header = LinesOf(LogOf("fifo", 1)).front() + '\n';
  EXPECT_EQ(ReplayText("").error, "line 1: the log is empty");
  EXPECT_EQ(ReplayText("GET / HTTP/1.1\n").error,
            "line 1: expected \"torpor-events 2\": not an event log, or of another release");
  EXPECT_EQ(ReplayText(header + "7 < lease_ended instance=3\n").error,
            "line 2: there is no such instance");
  EXPECT_EQ(ReplayText(header + "7 < request_arrived request=1 instance=0 deadline=9 "
                                "is_implicit=0 function=1 arrival=-\n")
                .error,
            "line 2: the function has no instance");
  EXPECT_EQ(ReplayText(header + "7 < sleep\n").error, "line 2: there is no event \"sleep\"");
  std::string unknown = header;
  unknown.replace(unknown.find("policy=fifo"), 11, "policy=best");
  EXPECT_EQ(ReplayText(unknown).error, "line 1: there is no policy \"best\"");
}

}  // namespace
}  // namespace torpor::scheduler
