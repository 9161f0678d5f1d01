#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/chaos/delays.h"
#include "tests/chaos/growth.h"
#include "tests/chaos/load.h"

namespace torpor::chaos {

// What a run has come to.
struct ChaosResult {
  double seconds = 0;
  RequestCounts requests{};
  std::map<Victim, VictimDelays> delays{};
  std::vector<Duration> undisturbed{};  // ascending
  unsigned images_on_disk = 0;          // the most that were seen after a recovery
  std::map<std::string, Growth> growths{};
  std::vector<std::string> faults{};  // of the load, and of the node
};

// How long functions may wait after a kill, where it matters.
struct WaitLimits {
  Duration p99 = Duration::max();
  Duration longest = Duration::max();
};
WaitLimits LimitsOf(Victim victim);

// What is wrong with the run; nothing if all is well. Delays count where the run `judges_times`.
std::vector<std::string> Judge(const ChaosResult& result, bool judges_times);

}  // namespace torpor::chaos
