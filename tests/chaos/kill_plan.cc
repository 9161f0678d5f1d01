#include "tests/chaos/kill_plan.h"

#include <array>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"

namespace torpor::chaos {
namespace {

using std::chrono::milliseconds;

constexpr std::array<std::pair<Victim, const char*>, 6> kNames = {
    {{Victim::kExecutor, "executor"},
     {Victim::kFunction, "function"},
     {Victim::kTorpord, "torpord"},
     {Victim::kSpare, "spare"},
     {Victim::kPoolOwner, "pool_owner"},
     {Victim::kRouter, "router"}}};

// A tenth of the kills, and a little more: some come too late to meet the recovery.
constexpr unsigned kOneOf = 8;
constexpr Duration kLongestPause = milliseconds(600);
// Recoveries take longer, most of them.
constexpr Duration kWithinRecovery = milliseconds(300);

}  // namespace

const char* NameOf(Victim victim) { return kNames.at(static_cast<std::size_t>(victim)).second; }

absl::StatusOr<Victim> VictimOf(const std::string& name) {
  for (const auto& [victim, known] : kNames) {
    if (name == known) return victim;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", name,
      "\" is no victim; name executor, function, torpord, spare, pool_owner or router, "
      "with commas between"));
}

KillPlan::KillPlan(unsigned seed, std::vector<Victim> victims)
    : random_(seed), victims_(std::move(victims)) {}

Kill KillPlan::Next() {
  Kill kill;
  kill.victim = victims_[Below(static_cast<unsigned>(victims_.size()))];
  kill.which = Below(1U << 16);
  kill.is_after_recovery = Below(kOneOf) != 0 || is_first_;
  kill.pause = UpTo(kill.is_after_recovery ? kLongestPause : kWithinRecovery);
  is_first_ = false;
  return kill;
}

// Not a distribution of the library: those differ from library to library.
unsigned KillPlan::Below(unsigned bound) { return static_cast<unsigned>(random_() % bound); }

Duration KillPlan::UpTo(Duration longest) {
  const auto steps = static_cast<unsigned>(longest / std::chrono::microseconds(1));
  return std::chrono::microseconds(Below(steps + 1));
}

}  // namespace torpor::chaos
