#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "base/clock.h"
#include "tests/chaos/kill_plan.h"

namespace torpor::chaos {

// What one kill meant to the functions.
struct KillDelays {
  Victim victim = Victim::kExecutor;
  TimePoint at{};
  // Another kill came before the node had recovered from this one, or this one so after another.
  bool is_overlapped = false;
  Duration recovery{};  // until the node had recovered; of overlapping kills, from the last one
  // Of each function, its longest wait for an answer to a request that was under way at the kill or
  // was sent before the recovery: since the kill or, if later, since the request was sent.
  std::map<std::size_t, Duration> longest{};
};

// What requests wait for after kills, and what without. Not thread-safe; times do not go back.
class Delays {
 public:
  // The node has recovered, or not, from the kills before.
  void OnKill(Victim victim, TimePoint at);
  void OnAnswer(std::size_t function, TimePoint sent, TimePoint answered);
  // From all kills so far.
  void OnRecovery(TimePoint at);

  const std::vector<KillDelays>& kills() const { return kills_; }
  // Waits for answers to requests that met no kill and no recovery.
  const std::vector<Duration>& undisturbed() const { return undisturbed_; }

 private:
  bool is_recovering_ = false;
  TimePoint recovered_{};
  std::vector<KillDelays> kills_;
  std::vector<Duration> undisturbed_;
};

// Of a kind of victim, of kills that did not overlap.
struct VictimDelays {
  std::size_t kills = 0;
  std::size_t overlapped = 0;
  std::vector<Duration> waits{};       // a function's longest for each kill, ascending
  std::vector<Duration> recoveries{};  // one for each kill, ascending
};
std::map<Victim, VictimDelays> ByVictim(const std::vector<KillDelays>& kills);

// Of ascending values; zero if there are none.
Duration Percentile(const std::vector<Duration>& ascending, double rank);

}  // namespace torpor::chaos
