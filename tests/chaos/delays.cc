#include "tests/chaos/delays.h"

#include <algorithm>

#include "base/nearest_rank.h"

namespace torpor::chaos {

void Delays::OnKill(Victim victim, TimePoint at) {
  if (is_recovering_) kills_.back().is_overlapped = true;
  kills_.push_back({.victim = victim, .at = at, .is_overlapped = is_recovering_});
  is_recovering_ = true;
}

void Delays::OnAnswer(std::size_t function, TimePoint sent, TimePoint answered) {
  if (!is_recovering_) {
    // One that was sent before a recovery's end may have waited for it.
    if (sent >= recovered_) undisturbed_.push_back(answered - sent);
    return;
  }
  KillDelays& kill = kills_.back();
  Duration& longest = kill.longest[function];
  longest = std::max(longest, answered - std::max(sent, kill.at));
}

void Delays::OnRecovery(TimePoint at) {
  if (!is_recovering_) return;
  kills_.back().recovery = at - kills_.back().at;
  is_recovering_ = false;
  recovered_ = at;
}

std::map<Victim, VictimDelays> ByVictim(const std::vector<KillDelays>& kills) {
  std::map<Victim, VictimDelays> victims;
  for (const KillDelays& kill : kills) {
    VictimDelays& delays = victims[kill.victim];
    ++delays.kills;
    if (kill.is_overlapped) {
      ++delays.overlapped;
      continue;
    }
    for (const auto& [function, wait] : kill.longest) delays.waits.push_back(wait);
    delays.recoveries.push_back(kill.recovery);
  }
  for (auto& [victim, delays] : victims) {
    std::sort(delays.waits.begin(), delays.waits.end());
    std::sort(delays.recoveries.begin(), delays.recoveries.end());
  }
  return victims;
}

Duration Percentile(const std::vector<Duration>& ascending, double rank) {
  return ascending.empty() ? Duration::zero() : ascending[NearestRank(ascending.size(), rank)];
}

}  // namespace torpor::chaos
