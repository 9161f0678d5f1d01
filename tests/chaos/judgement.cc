#include "tests/chaos/judgement.h"

#include <fmt/format.h>

#include <chrono>

namespace torpor::chaos {
namespace {

using std::chrono::seconds;

void JudgeTimes(const ChaosResult& result, std::vector<std::string>& faults) {
  for (const auto& [victim, delays] : result.delays) {
    const Duration limit = LimitOf(victim);
    const Duration p99 = Percentile(delays.waits, 0.99);
    if (limit == Duration::zero() || p99 < limit) continue;
    faults.push_back(
        fmt::format("after the death of {} functions waited {:.2f} s (p99); the limit is {:.2f} s",
                    NameOf(victim), ToSeconds(p99), ToSeconds(limit)));
  }
}

}  // namespace

Duration LimitOf(Victim victim) {
  switch (victim) {
    case Victim::kExecutor:
      return seconds(1);
    case Victim::kTorpord:
      return seconds(3);
    case Victim::kFunction:
      break;
  }
  return Duration::zero();
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
