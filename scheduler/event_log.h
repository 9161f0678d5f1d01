#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "scheduler/scheduler.h"

// What a scheduler was told and what it decided, as lines of text; docs/event-log.md. All text is
// without its newline.
namespace torpor::scheduler {

// The first line: how the scheduler was made.
struct EventLogHeader {
  std::string policy;  // of SetupNames
  std::uint64_t seed = 0;
  Options options{};
};

std::string Encode(const EventLogHeader& header);
std::string Encode(const Event& event, TimePoint when);
// `when`: of the event that led to it.
std::string Encode(const Action& action, TimePoint when);

// A line, or why it is none: one of both.
template <typename Value>
struct Decoded {
  std::optional<Value> value;
  std::string error;  // what is wrong, and where in the line
};

struct LoggedEvent {
  TimePoint when{};
  Event event;
};

// Take only what Encode makes: what they accept is encoded to the same text again.
Decoded<EventLogHeader> DecodeHeader(std::string_view line);
Decoded<LoggedEvent> DecodeEvent(std::string_view line);

// Whether the line is an action's, to judge by its beginning.
bool IsActionLine(std::string_view line);

}  // namespace torpor::scheduler
