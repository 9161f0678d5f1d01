#pragma once

#include <cstdint>
#include <istream>
#include <optional>
#include <string>

namespace torpor::scheduler {

// What came of a log's replay: a scheduler that is made as the log's was gets its events at their
// times, and its actions are compared with those of the log, byte for byte. It ends at the first
// thing that is not as it should be.
struct ReplayOutcome {
  // What stands in the log, and what should. Empty: nothing, as at the log's end.
  struct Difference {
    std::uint64_t line = 0;  // counted from 1
    std::string logged;
    std::string decided;
  };

  std::uint64_t events = 0;
  std::uint64_t actions = 0;  // those that were as logged
  std::optional<Difference> difference;
  std::string error;  // why the log cannot be read on, and in which line; empty: it can

  bool is_same() const { return !difference && error.empty(); }
};

ReplayOutcome Replay(std::istream& log);

}  // namespace torpor::scheduler
