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

// What torpor-plus has of its own. Its request queue's order, that late requests stand aside, and
// that functions beyond rescue come last, can each be had without the others.
enum class Part { kQueue, kLateAside, kBeyondRescue, kPlacement, kEviction };

// One of the systems that are compared: how it schedules is a setup of the scheduler, and the rest
// is how it executes.
struct System {
  std::string name;
  std::string setup;              // of the scheduler
  bool is_native = false;         // containers with runtimes of their own on the GPU
  bool starts_cold = false;       // a container starts when a request finds none
  bool is_keep_alive = false;     // and ends after a function's own p99 of gaps without requests
  bool has_single_pool = false;   // blocks of evicted images are to be freed for others
  std::optional<Part> without{};  // of the setup: as torpor has it instead
};

// torpor, torpor-plus, fifo, lru, block, random, native, keep-alive, non-swap, simple-swap, and
// "torpor-plus without queue" and so on: late-aside, beyond-rescue, placement, eviction.
const std::vector<System>& Systems();
absl::StatusOr<System> SystemNamed(std::string_view name);

// Fails where the system executes in a way of which the profiles say nothing.
absl::Status CheckKnown(const System& system, const Profiles& profiles);

// A scheduler of that system. `seed` is for policies that draw lots.
std::unique_ptr<scheduler::Scheduler> MakeScheduler(const System& system, std::uint64_t seed);

}  // namespace torpor::sim
