#include "tools/sim/systems.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "scheduler/setup.h"

namespace torpor::sim {
namespace {

using scheduler::Setup;

// Gives a torpor-plus setup one part of the paper's.
void ReplaceByPapers(Part part, Setup paper, Setup* setup) {
  switch (part) {
    case Part::kQueue:
      setup->policies.queue = std::move(paper.policies.queue);
      return;
    case Part::kLateAside:
      setup->options.too_late = paper.options.too_late;
      return;
    case Part::kBeyondRescue:
      setup->policies.queue = scheduler::MakeSharedQueue([] {
        return scheduler::MakeLatestStartQueue(
            {.rescue_limit = std::numeric_limits<double>::infinity()});
      });
      return;
    case Part::kPlacement:
      setup->policies.placement = std::move(paper.policies.placement);
      return;
    case Part::kEviction:
      setup->policies.eviction = std::move(paper.policies.eviction);
      return;
  }
}

// The scheduler's setup of a name that must be known.
Setup SetupNamed(const std::string& name, std::uint64_t seed,
                 const scheduler::PolicyConstants& constants) {
  auto setup = scheduler::MakeSetup(name, seed, constants);
  TORPOR_CHECK(setup.has_value());
  return *std::move(setup);
}

// torpor-plus with `part` as torpor has it.
System PlusWithout(const std::string& name, Part part) {
  return {
      .name = absl::StrCat("torpor-plus without ", name), .setup = "torpor-plus", .without = part};
}

}  // namespace

const std::vector<System>& Systems() {
  static const auto* const systems = new std::vector<System>{
      {.name = "torpor", .setup = "torpor"},
      {.name = "torpor-plus", .setup = "torpor-plus"},
      {.name = "fifo", .setup = "fifo"},
      {.name = "lru", .setup = "lru"},
      {.name = "block", .setup = "torpor", .has_single_pool = true},
      {.name = "random", .setup = "random"},
      {.name = "simple-swap", .setup = "simple-swap"},
      {.name = "native", .setup = "native", .is_native = true},
      {.name = "keep-alive",
       .setup = "keep-alive",
       .is_native = true,
       .starts_cold = true,
       .is_keep_alive = true},
      {.name = "non-swap", .setup = "non-swap"},
      PlusWithout("queue", Part::kQueue),
      PlusWithout("late-aside", Part::kLateAside),
      PlusWithout("beyond-rescue", Part::kBeyondRescue),
      PlusWithout("placement", Part::kPlacement),
      PlusWithout("eviction", Part::kEviction),
  };
  return *systems;
}

absl::StatusOr<System> SystemNamed(std::string_view name) {
  std::vector<std::string> names;
  for (const System& system : Systems()) {
    if (system.name == name) return system;
    names.push_back(system.name);  // NOLINT: a handful of them
  }
  return absl::InvalidArgumentError(
      absl::StrCat("no system '", std::string(name), "'; there are ", absl::StrJoin(names, ", ")));
}

absl::Status CheckKnown(const System& system, const Profiles& profiles) {
  for (const ModelProfile& model : profiles.models) {
    if (system.is_native && model.native == Duration::zero()) {
      return absl::InvalidArgumentError(absl::StrCat(
          system.name, " needs native_ms, native_gb and cold_start_s of model ", model.name));
    }
    if (system.has_single_pool && model.blocks == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(system.name, " needs the number of blocks of model ", model.name));
    }
  }
  return absl::OkStatus();
}

std::unique_ptr<scheduler::Scheduler> MakeScheduler(const System& system, std::uint64_t seed) {
  Setup setup = SetupNamed(system.setup, seed, system.constants);
  if (system.without) {
    ReplaceByPapers(*system.without, SetupNamed("torpor", seed, system.constants), &setup);
  }
  return std::make_unique<scheduler::Scheduler>(std::move(setup.policies), setup.options);
}

}  // namespace torpor::sim
