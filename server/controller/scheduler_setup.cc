#include "server/controller/scheduler_setup.h"

#include <optional>
#include <utility>

#include "base/check.h"

namespace torpor::server {
namespace {

constexpr std::uint64_t kSeed = 0;

// Returns nullopt if the policy decides.
std::optional<scheduler::TooLate> TooLateOf(LateRequests late) {
  switch (late) {
    case LateRequests::kAsPolicy:
      return std::nullopt;
    case LateRequests::kServe:
      return scheduler::TooLate::kServe;
    case LateRequests::kServeLast:
      return scheduler::TooLate::kServeLast;
    case LateRequests::kRefuse:
      return scheduler::TooLate::kRefuse;
  }
  return std::nullopt;
}

}  // namespace

scheduler::Setup SetupOf(const Config& config) {
  std::optional<scheduler::Setup> setup =
      scheduler::MakeSetup(config.scheduling.policy, kSeed, config.scheduling.constants);
  TORPOR_CHECK(setup.has_value());  // the configuration accepts known policies only
  setup->options.idle_write_back = config.scheduling.idle_write_back;
  setup->options.too_late = TooLateOf(config.scheduling.too_late).value_or(setup->options.too_late);
  setup->options.max_waiting = static_cast<std::size_t>(config.scheduling.max_waiting);
  return *std::move(setup);
}

scheduler::EventLogHeader EventLogHeaderOf(const Config& config) {
  return {config.scheduling.policy, kSeed, SetupOf(config).options};
}

}  // namespace torpor::server
