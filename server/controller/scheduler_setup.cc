#include "server/controller/scheduler_setup.h"

#include <optional>
#include <string>
#include <utility>

#include "base/check.h"

namespace torpor::server {
namespace {

constexpr std::uint64_t kSeed = 0;

scheduler::TooLate TooLateOf(const std::string& word) {
  if (word == "refuse") return scheduler::TooLate::kRefuse;
  return word == "serve-last" ? scheduler::TooLate::kServeLast : scheduler::TooLate::kServe;
}

}  // namespace

scheduler::Setup SetupOf(const Config& config) {
  std::optional<scheduler::Setup> setup = scheduler::MakeSetup(config.policy, kSeed);
  TORPOR_CHECK(setup.has_value());  // the configuration names none that there is not
  setup->options.idle_write_back = config.idle_write_back;
  if (config.too_late != "auto") setup->options.too_late = TooLateOf(config.too_late);
  setup->options.max_waiting = static_cast<std::size_t>(config.max_waiting);
  return *std::move(setup);
}

scheduler::EventLogHeader EventLogHeaderOf(const Config& config) {
  return {config.policy, kSeed, SetupOf(config).options};
}

}  // namespace torpor::server
