#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/sim/figures/figure.h"

namespace torpor::sim {

// "1.50", or that there is none.
std::string Number(std::optional<double> number, int decimals);

// What the rows of one arrival process show of the paper's claims. Nothing is said of rows that
// were not simulated.
class Claims {
 public:
  Claims(const std::vector<Json>& rows, workload::ArrivalProcess arrivals)
      : rows_(rows), arrivals_(arrivals) {}

  // A measure of the system's row with these labels.
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

// The findings of a figure of which `add` says the claims, for both arrival processes.
std::function<std::vector<Finding>(const std::vector<Json>& rows)> FindingsOf(void (*add)(Claims&));

}  // namespace torpor::sim
