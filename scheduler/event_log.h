#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "scheduler/scheduler.h"

// Events and decisions of a scheduler as lines of text, without newlines; docs/event-log.md.
namespace torpor::scheduler {

// The first line: policy, seed and options of the scheduler.
struct EventLogHeader {
  std::string policy;  // of SetupNames
  std::uint64_t seed = 0;
  SchedulerOptions options{};
};

std::string Encode(const EventLogHeader& header);
std::string Encode(const Event& event, TimePoint when);
// `when`: the time of the event that led to the action.
std::string Encode(const Action& action, TimePoint when);

// A decoded line, or an error.
template <typename Value>
struct Decoded {
  std::optional<Value> value;
  std::string error;  // what is wrong, and where in the line; empty with a value
};

struct LoggedEvent {
  TimePoint when{};
  Event event;
};

// Accept only lines that Encode makes: an accepted line encodes to the same text again.
Decoded<EventLogHeader> DecodeHeader(std::string_view line);
Decoded<LoggedEvent> DecodeEvent(std::string_view line);

// Whether the line begins as an action's line.
bool IsActionLine(std::string_view line);

}  // namespace torpor::scheduler
