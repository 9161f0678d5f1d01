#include "scheduler/replay.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
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
            "line 1: expected \"torpor-events 6\": not an event log, or of another release");
  EXPECT_EQ(ReplayText(header + "7 < lease_ended instance=3\n").error,
            "line 2: there is no such instance");
  EXPECT_EQ(ReplayText(header + "7 < request_arrived request=1 instance=0 deadline=9 "
                                "is_implicit=0 function=1 arrival=-\n")
                .error,
            "line 2: the function has no instance");
  EXPECT_EQ(ReplayText("torpor-events 6 policy=fifo seed=0 implicit_quantum_for_request=-1 "
                       "implicit_quantum=0 idle_write_back=0 evicts=1 "
                       "swaps_from_peers=1 too_late=serve max_waiting=0 alpha_start=0.5 "
                       "alpha_period=1000000 heavy_ratio=1.3 outcome_window=1000000000\n")
                .error,
            "line 1: an option is no duration");
  EXPECT_EQ(ReplayText("torpor-events 6 policy=fifo seed=0 implicit_quantum_for_request=1 "
                       "implicit_quantum=0 idle_write_back=0 evicts=1 "
                       "swaps_from_peers=1 too_late=serve max_waiting=0 alpha_start=1.5 "
                       "alpha_period=1000000 heavy_ratio=1.3 outcome_window=1000000000\n")
                .error,
            "line 1: alpha_start is not from 0 to 1");
  EXPECT_EQ(ReplayText(header + "7 < sleep\n").error, "line 2: there is no event \"sleep\"");
  std::string unknown = header;
  unknown.replace(unknown.find("policy=fifo"), 11, "policy=best");
  EXPECT_EQ(ReplayText(unknown).error, "line 1: there is no policy \"best\"");
}

TEST(ReplayTest, TheFuzzersSeedsAreLogs) {
  int seeds = 0;
  for (const auto& entry : std::filesystem::directory_iterator(
           TORPOR_SOURCE_DIR "/tests/scheduler/replay_fuzz_seeds")) {
    std::ifstream log(entry.path());
    EXPECT_EQ(Replay(log).error, "") << entry.path();
    ++seeds;
  }
  EXPECT_GT(seeds, 0);
}

struct BadEvent {
  const char* event;
  const char* error;
};

constexpr BadEvent kBadEvents[] = {
    {"9 < lease_ended instance=2", "the instance is a secondary shard"},
    {"9 < load_wanted instance=2 gpu=-", "the instance is a secondary shard"},
    {"9 < eviction_wanted instance=2", "the instance is a secondary shard"},
    {"9 < pin_changed instance=2 is_pinned=1", "the instance is a secondary shard"},
    {"9 < request_arrived request=1 instance=2 deadline=9 is_implicit=0 function=0 arrival=-",
     "the instance is a secondary shard"},
    {"9 < request_arrived request=0 instance=1 deadline=9 is_implicit=0 function=0 arrival=-",
     "the request has no name"},
    {"9 < request_arrived request=1 instance=1 deadline=-1 is_implicit=0 function=0 arrival=-",
     "the deadline is no time"},
    {"9 < request_arrived request=1 instance=1 deadline=9 is_implicit=0 function=0 arrival=10",
     "the arrival is no time until now"},
    {"9 < request_arrived request=7 instance=1 deadline=9 is_implicit=0 function=0 arrival=-",
     "the request is there already"},
    {"9 < swap_in_done instance=3 gpu=0 ok=1", "there is no such instance"},
    {"9 < growth_wanted growth=2 instance=1 bytes=18446744073709551615", "the growth is too large"},
    {"9 < executor_up gpu=-1 capacity=9 sources= pcie_switch=-", "the GPU's index is below 0"},
    {"9 < executor_up gpu=1 capacity=9 sources=0,1 pcie_switch=-",
     "the GPU is a source of its own images"},
    {"9 < executor_up gpu=1 capacity=18446744073709551615 sources= pcie_switch=-",
     "the capacity is too large"},
    {"9 < instance_added instance=3 max_in_flight=0 secondary_shards= function=0 keeps_replicas=0 "
     "is_constant=0",
     "max_in_flight is not from 1 to a million"},
    {"9 < instance_added instance=3 max_in_flight=1 secondary_shards=4,4 function=0 "
     "keeps_replicas=0 is_constant=0",
     "the instance has a shard twice"},
    {"9 < instance_added instance=3 max_in_flight=1 secondary_shards=3 function=0 keeps_replicas=0 "
     "is_constant=0",
     "the instance has a shard twice"},
    {"9 < instance_added instance=3 max_in_flight=1 secondary_shards=0 function=0 keeps_replicas=0 "
     "is_constant=0",
     "the instance or a secondary shard has no name"},
    {"9 < instance_added instance=3 max_in_flight=1 secondary_shards=2 function=0 keeps_replicas=0 "
     "is_constant=0",
     "the instance is there already"},
    {"9 < tenant_set tenant=1 weight=1e-300", "the weight is too small or too large"},
    {"9 < function_set function=0 deadline=5 percentile=0.9 priority=0 max_waiting=0 tenant=0 "
     "keep_alive=0",
     "the function has no name"},
    {"9 < function_set function=1 deadline=-5 percentile=0.9 priority=0 max_waiting=0 tenant=0 "
     "keep_alive=0",
     "the deadline is no duration"},
    {"9 < function_set function=1 deadline=5 percentile=0.99999 priority=0 max_waiting=0 tenant=0 "
     "keep_alive=0",
     "the percentile is not above 0 and at most 0.9999"},
    {"9 < function_set function=1 deadline=5 percentile=0.9 priority=0 max_waiting=0 tenant=0 "
     "keep_alive=9223372036854775807",
     "keep_alive is no duration"},
    {"6 < time_passed", "the time goes back"},
    {"9223372036854775807 < time_passed", "the time is below 0 or above nine years"},
};

TEST(ReplayTest, WhatNoSchedulerCanBeToldIsSaid) {
  std::string log = LinesOf(LogOf("fifo", 1)).front() + '\n';
  log +=
      "7 < instance_added instance=1 max_in_flight=1 secondary_shards=2 function=0 "
      "keeps_replicas=0 is_constant=0\n";
  log += "7 < request_arrived request=7 instance=1 deadline=9 is_implicit=0 function=0 arrival=-\n";
  EXPECT_EQ(ReplayText(log).error, "");
  EXPECT_EQ(ReplayText(log + "9 < request_arrived request=7 instance=1 deadline=9 is_implicit=0 "
                             "function=0 arrival=8\n")
                .error,
            "")
      << "a request that waits may come again";
  for (const BadEvent& bad : kBadEvents) {
    EXPECT_EQ(ReplayText(log + bad.event + '\n').error, std::string("line 4: ") + bad.error)
        << bad.event;
  }
}

}  // namespace
}  // namespace torpor::scheduler
