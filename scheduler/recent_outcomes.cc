#include "scheduler/recent_outcomes.h"

namespace torpor::scheduler {

void RecentOutcomes::Add(bool in_time, TimePoint now) {
  if (parts_.empty() || now >= parts_.back().begin + together()) parts_.push_back({.begin = now});
  ++finished_;
  ++parts_.back().finished;
  if (!in_time) return;
  ++in_time_;
  ++parts_.back().in_time;
}

void RecentOutcomes::Forget(TimePoint now) {
  while (!parts_.empty() && *next_end() <= now) {
    finished_ -= parts_.front().finished;
    in_time_ -= parts_.front().in_time;
    parts_.erase(parts_.begin());
  }
}

void RecentOutcomes::Clear() { *this = RecentOutcomes(window_); }

std::optional<TimePoint> RecentOutcomes::next_end() const {
  if (parts_.empty()) return std::nullopt;
  return parts_.front().begin + together() + window_;
}

}  // namespace torpor::scheduler
