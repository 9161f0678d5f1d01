#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "scheduler/scheduler.h"

namespace torpor::scheduler {

// A named choice of policies and options.
struct Setup {
  Policies policies;
  SchedulerOptions options;
};

// Names of all setups, which docs/scheduling.md describes.
std::vector<std::string_view> SetupNames();

// Returns nullopt for an unknown name. `seed`: for setups that draw at random. The options have
// the constants.
std::optional<Setup> MakeSetup(std::string_view name, std::uint64_t seed = 0,
                               const PolicyConstants& constants = {});

}  // namespace torpor::scheduler
