#pragma once

#include <optional>

#include "base/clock.h"
#include "server/supervisor/restart_pauses.h"

namespace torpor::init {

// Decides what follows the end of the program: another start, or torpor-init's own end. Pure.
class RestartPolicy {
 public:
  explicit RestartPolicy(const server::RestartPauses::Options& pauses) : pauses_(pauses) {}

  // A signal that the program has been sent. After SIGTERM or SIGINT the next end is the last.
  void OnSignal(int number);
  // The program serves, so from now on a successor may have something to continue.
  void OnReady() { has_served_ = serves_ = true; }
  bool is_stopping() const { return is_stopping_; }

  // The pause before the next start; nullopt if there is none. `exit_status`: as a shell tells it.
  // `run`: how long the program ran, zero if it could not be started. A run in which it did not
  // come to serve is a failure, however long it was.
  std::optional<Duration> OnEnd(int exit_status, Duration run);

 private:
  server::RestartPauses pauses_;
  bool is_stopping_ = false;
  bool is_restart_wanted_ = false;
  bool has_served_ = false;  // ever
  bool serves_ = false;      // in this run
};

}  // namespace torpor::init
