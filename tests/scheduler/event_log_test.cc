#include "scheduler/event_log.h"

#include <gtest/gtest.h>

#include <random>
#include <sstream>
#include <utility>

#include "tests/scheduler/scheduler_world.h"

namespace torpor::scheduler {
namespace {

constexpr TimePoint At(std::int64_t ns) { return TimePoint(Duration(ns)); }

TEST(EventLogTest, ALineIsTimeMarkNameAndFields) {
  EXPECT_EQ(
      Encode(Event(RequestArrived{.request = RequestId{7}, .instance = InstanceId{3}}), At(5)),
      "5 < request_arrived request=7 instance=3 deadline=9223372036854775807 is_implicit=0 "
      "function=0 arrival=-");
  EXPECT_EQ(Encode(Event(ExecutorUp{GpuIndex{1}, 64, {GpuIndex{0}, GpuIndex{2}}, 1}), At(0)),
            "0 < executor_up gpu=1 capacity=64 sources=0,2 pcie_switch=1");
  EXPECT_EQ(Encode(Event(RequestGone{RequestId{7}, Ending::kLost}), At(9)),
            "9 < request_gone request=7 ending=lost");
  EXPECT_EQ(Encode(Action(SwapIn{InstanceId{3}, GpuIndex{0}, GpuIndex{1}, true}), At(9)),
            "9 > swap_in instance=3 gpu=0 source=1 keeps_source=1");
  EXPECT_EQ(Encode(Action(Refuse{RequestId{7}, Refusal::kTooLate}), At(9)),
            "9 > refuse request=7 reason=too_late");
  EXPECT_EQ(Encode(Action(RefuseLoad{InstanceId{7}, LoadRefusal::kTooLarge}), At(9)),
            "9 > refuse_load instance=7 reason=too_large");
  EXPECT_EQ(Encode(Action(Grant{RequestId{7}, InstanceId{3}, GpuIndex{0}, false, {}}), At(9)),
            "9 > grant request=7 instance=3 gpu=0 joins=0 secondary_gpus=");
}

TEST(EventLogTest, TheHeaderHoldsAllOptions) {
  EventLogHeader header{.policy = "random", .seed = 42};
  header.options.constants.alpha_start = 0.25;
  header.options.constants.heavy_ratio = 1.5;
  header.options.too_late = TooLate::kRefuse;
  header.options.max_waiting = 9;
  const std::string line = Encode(header);
  EXPECT_EQ(line,
            "torpor-events 6 policy=random seed=42 implicit_quantum_for_request=5000000 "
            "implicit_quantum=100000000 idle_write_back=0 evicts=1 "
            "swaps_from_peers=1 too_late=refuse max_waiting=9 alpha_start=0.25 "
            "alpha_period=40000000000 heavy_ratio=1.5 outcome_window=3600000000000");
  const auto decoded = DecodeHeader(line);
  ASSERT_TRUE(decoded.value) << decoded.error;
  EXPECT_EQ(Encode(*decoded.value), line);
}

template <std::size_t... kKinds>
void ExpectToKnow(std::index_sequence<kKinds...>) {
  for (const Event& event : {Event(std::variant_alternative_t<kKinds, Event>{})...}) {
    const std::string line = Encode(event, At(1));
    const auto decoded = DecodeEvent(line);
    ASSERT_TRUE(decoded.value) << line << ": " << decoded.error;
    EXPECT_EQ(decoded.value->event.index(), event.index()) << line;
  }
}

TEST(EventLogTest, EveryKindOfEventHasItsName) {
  ExpectToKnow(std::make_index_sequence<std::variant_size_v<Event>>());
}

TEST(EventLogTest, WhatIsDecodedIsEncodedToTheSame) {
  std::string log;
  std::mt19937 random(1);
  SchedulerWorld world({.gpus = 3, .instances = 6, .log = &log},
                       [&] { return static_cast<std::uint32_t>(random()); });
  for (int step = 0; step < 2000; ++step) ASSERT_EQ(world.Step(), "");
  std::istringstream lines(log);
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line)) {
    const auto decoded = DecodeEvent(line);
    ASSERT_EQ(!decoded.value, IsActionLine(line)) << line << ": " << decoded.error;
    if (!decoded.value) continue;
    EXPECT_EQ(Encode(decoded.value->event, decoded.value->when), line);
  }
}

struct BadLine {
  const char* line;
  const char* error;
};

TEST(EventLogTest, WhatIsWrongIsSaid) {
  const BadLine lines[] = {
      {"", "\"\" is no time in nanoseconds"},
      {"soon < time_passed", "\"soon\" is no time in nanoseconds"},
      {"007 < time_passed", "\"007\" is no time in nanoseconds"},
      {"7 > time_passed", "expected \"<\", found \">\""},
      {"7 < coffee", "there is no event \"coffee\""},
      {"7 < time_passed now=1", "expected the end, found \"now=1\""},
      {"7 < executor_down", "expected gpu=, found \"\""},
      {"7 < executor_down gpu=one", "\"one\" is no gpu"},
      {"7 < executor_down gpu=1 ", "expected the end, found \"\""},
      {"7 < swap_in_done instance=1 gpu=0 ok=yes", "\"yes\" is no ok"},
      {"7 < executor_up gpu=0 capacity=9 sources=1,,2 pcie_switch=-", "\"1,,2\" is no sources"},
      {"7 < request_gone request=1 ending=well", "\"well\" is no ending"},
      {"7 < image_shrunk instance=1 bytes=-1", "\"-1\" is no bytes"},
  };
  for (const BadLine& bad : lines) {
    const auto decoded = DecodeEvent(bad.line);
    EXPECT_FALSE(decoded.value) << bad.line;
    EXPECT_EQ(decoded.error, bad.error) << bad.line;
  }
  EXPECT_EQ(DecodeHeader("torpor-events 1 policy=fifo").error,
            "expected \"torpor-events 6\": not an event log, or of another release");
  EXPECT_EQ(DecodeHeader("torpor-events 6 seed=0").error, "expected policy=, found \"seed=0\"");
}

}  // namespace
}  // namespace torpor::scheduler
