#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "scheduler/scheduler.h"
#include "tools/sim/model_profile.h"

namespace torpor::sim {

// A part of torpor-plus that torpor lacks: the queue's order, late requests standing aside,
// functions beyond rescue coming last, placement, eviction. Each can be replaced alone.
enum class Part { kQueue, kLateAside, kBeyondRescue, kPlacement, kEviction };

// A compared system: a setup of the scheduler, and a way to execute.
struct System {
  std::string name;
  std::string setup;              // of the scheduler
  bool is_native = false;         // native containers with their own runtimes on the GPU
  bool starts_cold = false;       // a request without a container starts one
  bool is_keep_alive = false;     // a container ends after the p99 of the function's gaps
  bool has_single_pool = false;   // released blocks are cached in a single pool
  std::optional<Part> without{};  // this part of the setup is torpor's
  scheduler::PolicyConstants constants{};
};

// torpor, torpor-plus, fifo, lru, block, random, native, keep-alive, non-swap, simple-swap, and
// "torpor-plus without queue" and so on: late-aside, beyond-rescue, placement, eviction.
const std::vector<System>& Systems();
absl::StatusOr<System> SystemNamed(std::string_view name);

// Returns InvalidArgument if the profiles lack values that the system needs.
absl::Status CheckKnown(const System& system, const Profiles& profiles);

// Makes the system's scheduler. `seed`: for policies that draw at random.
std::unique_ptr<scheduler::Scheduler> MakeScheduler(const System& system, std::uint64_t seed);

}  // namespace torpor::sim
