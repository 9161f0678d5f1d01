#include "tests/chaos/judgement.h"

#include <fmt/format.h>

#include <chrono>

namespace torpor::chaos {
namespace {

using std::chrono::seconds;

void JudgeTimes(const ChaosResult& result, std::vector<std::string>& faults) {
  for (const auto& [victim, delays] : result.delays) {
    const auto judge = [&, who = NameOf(victim)](const char* what, Duration wait, Duration limit) {
      if (wait < limit) return;
      faults.push_back(
          fmt::format("after the death of {} functions waited {:.2f} s ({}); the limit is {:.2f} s",
                      who, ToSeconds(wait), what, ToSeconds(limit)));
    };
    const WaitLimits limits = LimitsOf(victim);
    judge("p99", Percentile(delays.waits, 0.99), limits.p99);
    judge("the longest", Percentile(delays.waits, 1), limits.longest);
  }
}

}  // namespace

WaitLimits LimitsOf(Victim victim) {
  switch (victim) {
    case Victim::kExecutor:
      return {.p99 = seconds(1)};
    case Victim::kTorpord:
      return {.p99 = seconds(3), .longest = seconds(5)};
    case Victim::kFunction:
    case Victim::kSpare:
    case Victim::kPoolOwner:
      break;
    case Victim::kRouter:
      return {.p99 = seconds(2), .longest = seconds(5)};
  }
  return {};
}

std::vector<std::string> Judge(const ChaosResult& result, bool judges_times) {
  std::vector<std::string> faults = result.faults;
  if (result.requests.wrong > 0) {
    faults.push_back(fmt::format("{} wrong answers", result.requests.wrong));
  }
  if (result.requests.failed > 0) {
    faults.push_back(
        fmt::format("{} requests failed whose functions were not killed", result.requests.failed));
  }
  if (result.requests.right == 0) faults.emplace_back("no request was answered");
  for (const auto& [what, growth] : result.growths) {
    if (growth.is_flat()) continue;
    faults.push_back(fmt::format("{}: grew from {:.1f} to {:.1f}, over {:.1f}", what, growth.first,
                                 growth.last, growth.limit));
  }
  if (judges_times) JudgeTimes(result, faults);
  return faults;
}

}  // namespace torpor::chaos
