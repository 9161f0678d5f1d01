#pragma once

#include <map>
#include <string>
#include <vector>

namespace torpor::chaos {

// Figures of the node at one moment, by what they are: "torpord: memory, MiB".
using Figures = std::map<std::string, double>;

struct Growth {
  double first = 0;  // median of the first third of the measurements after the warm-up
  double last = 0;   // of the last third
  double limit = 0;  // `last` may be so much

  bool is_flat() const { return last <= limit; }
};

// Whether the node uses more from kill to kill. Not thread-safe.
class GrowthRecord {
 public:
  void Add(const Figures& figures) { measurements_.push_back(figures); }

  // Of each figure; none of fewer than six measurements. A fifth of all is for the warm-up.
  std::map<std::string, Growth> Judge() const;

 private:
  std::vector<Figures> measurements_;
};

}  // namespace torpor::chaos
