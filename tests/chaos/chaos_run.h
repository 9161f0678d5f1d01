#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/chaos/kill_plan.h"

namespace torpor::chaos {

// Which run it is: what the environment says, or else what stands here.
struct ChaosRun {
  std::chrono::seconds length{600};  // CHAOS_SECONDS
  unsigned seed = 0;                 // CHAOS_SEED, or else random
  unsigned max_kills = 0;            // CHAOS_KILLS: the run ends after so many; 0: any number
  std::vector<Victim> victims{};     // CHAOS_VICTIMS: names with commas between; else all
  bool judges_times = false;         // CHAOS_JUDGE_TIMES=1: long delays fail the run
  std::string json{};                // CHAOS_JSON: the file of the result; empty: none
  std::string settings{};            // CHAOS_SETTINGS: further lines of torpord's configuration

  // An error names the variable.
  static absl::StatusOr<ChaosRun> FromEnvironment();
};

}  // namespace torpor::chaos
