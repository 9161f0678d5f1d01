#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "scheduler/scheduler.h"

namespace torpor::scheduler {

// Policies and options that belong together.
struct Setup {
  Policies policies;
  Options options;
};

// The names of all setups. docs/scheduling.md says what each is.
std::vector<std::string_view> SetupNames();

// Nothing for an unknown name. `seed`: of what is random.
std::optional<Setup> MakeSetup(std::string_view name, std::uint64_t seed = 0);

}  // namespace torpor::scheduler
