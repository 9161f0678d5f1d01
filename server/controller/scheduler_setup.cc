#include "server/controller/scheduler_setup.h"

#include <optional>
#include <utility>

#include "base/check.h"

namespace torpor::server {
namespace {

constexpr std::uint64_t kSeed = 0;

}  // namespace

scheduler::Setup SetupOf(const Config& config) {
  std::optional<scheduler::Setup> setup = scheduler::MakeSetup(config.policy, kSeed);
  TORPOR_CHECK(setup.has_value());  // the configuration names none that there is not
  setup->options.idle_write_back = config.idle_write_back;
  setup->options.refuses_too_late = config.refuses_too_late;
  setup->options.max_waiting = static_cast<std::size_t>(config.max_waiting);
  return *std::move(setup);
}

scheduler::EventLogHeader EventLogHeaderOf(const Config& config) {
  return {config.policy, kSeed, SetupOf(config).options};
}

}  // namespace torpor::server
