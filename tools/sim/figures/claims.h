#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/sim/figures/figure.h"

namespace torpor::sim {

// The number as text, such as "1.50"; "not simulated" for nullopt.
std::string Number(std::optional<double> number, int decimals);

// Checks the paper's claims on the rows of an arrival process. Claims about rows that were not
// simulated give no finding.
class Claims {
 public:
  Claims(const std::vector<Json>& rows, workload::ArrivalProcess arrivals)
      : rows_(rows), arrivals_(arrivals) {}

  // A measure of the system's row with the labels; nullopt if not simulated.
  std::optional<double> Of(const std::string& system, const Json& labels,
                           const std::string& key) const;

  void Add(const std::string& claim, bool holds, const std::string& ours);

  // `holds` of the measure, which is shown with so many decimals and the unit.
  template <typename Holds>
  void Check(const std::string& claim, std::optional<double> measure, const Holds& holds,
             int decimals, std::string_view unit = "") {
    if (measure) Add(claim, holds(*measure), Number(measure, decimals) + std::string(unit));
  }
  // `holds` of both.
  template <typename Holds>
  void Compare(const std::string& claim, std::optional<double> a, std::optional<double> b,
               const Holds& holds, int decimals) {
    if (!a || !b) return;
    Add(claim, holds(*a, *b), Number(a, decimals) + " against " + Number(b, decimals));
  }

  const std::vector<Finding>& findings() const { return findings_; }

 private:
  const std::vector<Json>& rows_;
  const workload::ArrivalProcess arrivals_;
  std::vector<Finding> findings_;
};

// Makes a figure's findings: calls `add` for each arrival process. A claim about rows that were not
// simulated gives no finding.
std::function<std::vector<Finding>(const std::vector<Json>& rows)> FindingsOf(void (*add)(Claims&));

}  // namespace torpor::sim
