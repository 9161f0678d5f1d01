#pragma once

#include <cstdint>
#include <istream>
#include <optional>
#include <string>

namespace torpor::scheduler {

// Result of a log's replay. A scheduler with the log's policy, seed and options gets the log's
// events at their times, and the actions are compared with the log's, byte for byte. The replay
// ends at the first difference or error.
struct ReplayOutcome {
  // The log's line and the expected one. Empty: no line, as at the end of the log.
  struct Difference {
    std::uint64_t line = 0;  // counted from 1
    std::string logged;
    std::string decided;
  };

  std::uint64_t events = 0;
  std::uint64_t actions = 0;  // as logged
  std::optional<Difference> difference;
  std::string error;  // an unreadable line: number and reason; empty if all were read

  bool is_same() const { return !difference && error.empty(); }
};

ReplayOutcome Replay(std::istream& log);

}  // namespace torpor::scheduler
