#include "tests/chaos/chaos_run.h"

#include <charconv>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "tests/e2e/run_environment.h"

namespace torpor::chaos {
namespace {

absl::StatusOr<unsigned> NumberOf(const char* variable, const std::string& otherwise) {
  const std::string text = e2e::Environment(variable, otherwise);
  unsigned number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size()) return number;
  return absl::InvalidArgumentError(
      absl::StrCat(variable, "=", text, ": write a number up to ", UINT32_MAX));
}

absl::StatusOr<std::vector<Victim>> VictimsOf(const std::string& names) {
  std::vector<Victim> victims;
  for (const absl::string_view name : absl::StrSplit(names, ',')) {
    TORPOR_ASSIGN_OR_RETURN(const Victim victim, VictimOf(std::string(name)));
    victims.push_back(victim);
  }
  return victims;
}

// Without the router: its death breaks connections, and the promise of the others is that none
// breaks.
constexpr const char* kAllVictims = "executor,function,torpord,spare,pool_owner";
constexpr const char* kWithoutSpares = "executor,function,torpord";

}  // namespace

absl::StatusOr<ChaosRun> ChaosRun::FromEnvironment() {
  ChaosRun run;
  TORPOR_ASSIGN_OR_RETURN(const unsigned seconds, NumberOf("CHAOS_SECONDS", "600"));
  run.length = std::chrono::seconds(seconds);
  TORPOR_ASSIGN_OR_RETURN(run.seed, NumberOf("CHAOS_SEED", e2e::RandomSeed()));
  TORPOR_ASSIGN_OR_RETURN(run.max_kills, NumberOf("CHAOS_KILLS", "0"));
  run.judges_times = e2e::Environment("CHAOS_JUDGE_TIMES", "0") == "1";
  run.json = e2e::Environment("CHAOS_JSON", "");
  run.settings = e2e::Environment("CHAOS_SETTINGS", "");
  if (run.settings.find("spare_executor:") == std::string::npos) {
    run.settings += "\nspare_executor: true";
  }
  const bool has_spares = run.settings.find("spare_executor: true") != std::string::npos;
  TORPOR_ASSIGN_OR_RETURN(
      run.victims,
      VictimsOf(e2e::Environment("CHAOS_VICTIMS", has_spares ? kAllVictims : kWithoutSpares)));
  run.function_setting = e2e::Environment("CHAOS_FUNCTION_SETTING", "");
  return run;
}

}  // namespace torpor::chaos
