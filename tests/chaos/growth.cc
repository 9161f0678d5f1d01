#include "tests/chaos/growth.h"

#include <algorithm>
#include <cstddef>

#include "base/nearest_rank.h"

namespace torpor::chaos {
namespace {

constexpr std::size_t kFewest = 6;
constexpr std::size_t kWarmUpShare = 5;

// Functions allocate and free, and processes have just been started when they are measured: so much
// is no growth. What leaks at every kill is more after a hundred kills.
constexpr double kShareOfGrowth = 0.15;
constexpr double kLeastGrowth = 16;  // MiB, descriptors or threads

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[NearestRank(values.size(), 0.5)];
}

}  // namespace

std::map<std::string, Growth> GrowthRecord::Judge() const {
  const std::size_t warm_up = measurements_.size() / kWarmUpShare;
  const std::size_t count = measurements_.size() - warm_up;
  std::map<std::string, Growth> growths;
  if (count < kFewest) return growths;
  for (const auto& [name, ignored] : measurements_.back()) {
    std::vector<double> first;
    std::vector<double> last;
    for (std::size_t i = 0; i < count; ++i) {
      const auto figure = measurements_[warm_up + i].find(name);
      if (figure == measurements_[warm_up + i].end()) continue;
      if (i < count / 3) first.push_back(figure->second);
      if (i >= count - count / 3) last.push_back(figure->second);
    }
    if (first.empty()) continue;
    Growth& growth = growths[name];
    growth.first = Median(first);
    growth.last = Median(last);
    growth.limit = growth.first * (1 + kShareOfGrowth) + kLeastGrowth;
  }
  return growths;
}

}  // namespace torpor::chaos
