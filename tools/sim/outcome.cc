#include "tools/sim/outcome.h"

#include <algorithm>

#include "base/nearest_rank.h"

namespace torpor::sim {

void PathCounts::Add(const PathCounts& other) {
  for (std::size_t i = 0; i < kPaths; ++i) {
    requests[i] += other.requests[i];
    bytes[i] += other.bytes[i];
  }
}

bool FunctionOutcome::Complies(double percentile) const {
  // What a product of decimal fractions is off by is no request.
  return static_cast<double>(in_time) >= percentile * static_cast<double>(arrived) - 1e-9;
}

std::size_t Outcome::Ran() const {
  return static_cast<std::size_t>(
      std::count_if(functions.begin(), functions.end(),
                    [](const FunctionOutcome& function) { return function.ran(); }));
}

std::size_t Outcome::Compliant(double percentile) const {
  return static_cast<std::size_t>(std::count_if(
      functions.begin(), functions.end(),
      [&](const FunctionOutcome& function) { return function.Complies(percentile); }));
}

double Outcome::Load(std::size_t node, std::size_t gpu) const {
  return length > Duration::zero() ? ToSeconds(nodes[node][gpu].busy) / ToSeconds(length) : 0;
}

PathCounts Outcome::Paths() const {
  PathCounts sum;
  for (const FunctionOutcome& function : functions) sum.Add(function.paths);
  return sum;
}

// Selects in linear time: outcomes have millions of latencies.
std::uint32_t Percentile(std::vector<std::uint32_t>& values, double percentile) {
  if (values.empty()) return 0;
  const auto at =
      values.begin() + static_cast<std::ptrdiff_t>(NearestRank(values.size(), percentile));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

}  // namespace torpor::sim
