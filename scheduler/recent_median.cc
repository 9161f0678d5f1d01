#include "scheduler/recent_median.h"

#include <algorithm>

namespace torpor::scheduler {

void RecentMedian::Add(Duration duration) {
  kept_[next_] = duration;
  next_ = (next_ + 1) % kKept;
  count_ = std::min(count_ + 1, kKept);
  std::array<Duration, kKept> sorted = kept_;
  auto* const end = sorted.begin() + count_;
  auto* const middle = sorted.begin() + (count_ - 1) / 2;
  std::nth_element(sorted.begin(), middle, end);
  value_ = *middle;
}

}  // namespace torpor::scheduler
