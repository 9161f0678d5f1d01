#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/chaos/kill_plan.h"

namespace torpor::chaos {

// A run, by variables of the environment.
struct ChaosRun {
  std::chrono::seconds length{600};  // CHAOS_SECONDS
  unsigned seed = 0;                 // CHAOS_SEED, or else random
  unsigned max_kills = 0;            // CHAOS_KILLS: the run ends after so many; 0: any number
  std::vector<Victim> victims{};     // CHAOS_VICTIMS: names with commas between; else
                                     // all but the router
  bool judges_times = false;         // CHAOS_JUDGE_TIMES=1: long delays fail the run
  std::string json{};                // CHAOS_JSON: the file of the result; empty: none
  std::string settings{};            // CHAOS_SETTINGS: further lines of torpord's configuration
  // CHAOS_FUNCTION_SETTING: a line of every function's.
  std::string function_setting{};

  bool is_translating() const {
    return settings.find("address_mode: translate") != std::string::npos;
  }

  bool spills() const { return settings.find("spill_limit:") != std::string::npos; }

  // An error names the variable.
  static absl::StatusOr<ChaosRun> FromEnvironment();
};

}  // namespace torpor::chaos
