#include "tools/sim/figures/claims.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/sim/figures/labels.h"

namespace torpor::sim {

using workload::ArrivalProcess;

std::string Number(std::optional<double> number, int decimals) {
  return number ? absl::StrFormat("%.*f", decimals, *number) : "not simulated";
}

std::optional<double> Claims::Of(const std::string& system, const Json& labels,
                                 const std::string& key) const {
  Json wanted = labels;
  wanted["system"] = system;
  wanted["arrivals"] = std::string(workload::ArrivalProcessName(arrivals_));
  const Json* const row = FindRow(rows_, wanted);
  return row == nullptr ? std::nullopt : MeasureIn(*row, key);
}

// The arrival process is part of the claim's text: each claim is checked for both.
void Claims::Add(const std::string& claim, bool holds, const std::string& ours) {
  const std::string arrivals(workload::ArrivalProcessName(arrivals_));
  findings_.push_back({absl::StrCat(claim, ", ", arrivals, " arrivals"), holds, ours});
}

std::function<std::vector<Finding>(const std::vector<Json>& rows)> FindingsOf(
    void (*add)(Claims&)) {
  return [add](const std::vector<Json>& rows) {
    std::vector<Finding> findings;
    for (const ArrivalProcess arrivals : {ArrivalProcess::kArtifact, ArrivalProcess::kPoisson}) {
      Claims claims(rows, arrivals);
      add(claims);
      findings.insert(findings.end(), claims.findings().begin(), claims.findings().end());
    }
    return findings;
  };
}

}  // namespace torpor::sim
