#pragma once

#include <algorithm>
#include <chrono>

#include "base/clock.h"

namespace torpor::server {

// Paces the starts of a process that is started again whenever it ends: at once the first time,
// then after pauses that double as long as the process ends soon.
class RestartPauses {
 public:
  struct Options {
    Duration first{std::chrono::milliseconds(100)};
    Duration longest{std::chrono::seconds(5)};
    // A process that ran for longer did not fail to start. Whoever kills it every few seconds finds
    // it started again at once; what dies of its start, or of the first thing it is given, is
    // paced.
    Duration healthy_after{std::chrono::seconds(1)};
  };

  RestartPauses() = default;
  explicit RestartPauses(const Options& options) : options_(options) {}

  // The pause after a run of this length; zero for a process that could not be started.
  Duration Next(Duration run) {
    failures_ = run >= options_.healthy_after ? 0 : failures_ + 1;
    if (failures_ <= 1) return {};
    Duration pause = options_.first;
    for (int i = 2; i < failures_ && pause < options_.longest; ++i) pause *= 2;
    return std::min(pause, options_.longest);
  }
  // Quick ends in a row so far.
  int failures() const { return failures_; }

 private:
  Options options_;
  int failures_ = 0;
};

}  // namespace torpor::server
