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

// The names of all setups:
//   torpor        the paper's policies: RRC queue, interference-aware placement, eviction by
//   heaviness torpor-plus   ours: docs/scheduling.md fifo, random, lru   the paper's, but for the
//   queue, the placement or the eviction (section 7.3) simple-swap   all three of these together
//   (section 7.4) native        each instance is bound to a GPU for ever, and refused where none
//   has room non-swap      the same; where programs are remote their images are smaller keep-alive
//   an instance stays on its GPU for its function's keep_alive, and is refused where
//                 none has room
std::vector<std::string_view> SetupNames();

// Nothing for an unknown name. `seed`: of what is random.
std::optional<Setup> MakeSetup(std::string_view name, std::uint64_t seed = 0);

}  // namespace torpor::scheduler
