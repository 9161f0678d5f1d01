#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

#include "base/clock.h"

namespace torpor::server {

// What a function has done to GPUs, and until when it gets none for that. Each fault that ends an
// executor is a strike. The first costs nothing; each further one takes the GPUs away for twice as
// long as the one before. One strike is forgiven after each kForgivenAfter without another. Pure.
class StrikeRecord {
 public:
  static constexpr Duration kFirstPause = std::chrono::seconds(1);
  static constexpr Duration kLongestPause = std::chrono::minutes(5);
  static constexpr Duration kForgivenAfter = std::chrono::minutes(10);
  // A crash counts if there was one before within this time: anything may crash once.
  static constexpr Duration kCrashWindow = std::chrono::minutes(10);

  // As of a strike at `last` that was the `strikes`-th, of which an earlier torpord has told.
  static StrikeRecord Of(unsigned strikes, TimePoint last) {
    StrikeRecord record;
    record.SetStrikes(strikes, last);
    return record;
  }

  // The function has ended an executor: the GPU says so, or its work did not end.
  void OnFault(TimePoint now) { SetStrikes(strikes(now) + 1, now); }
  // An executor has crashed while the function had its GPU, perhaps for another reason. Returns
  // whether that is a strike.
  bool OnCrash(TimePoint now) {
    const bool is_second = last_crash_ && now - *last_crash_ <= kCrashWindow;
    last_crash_ = now;
    if (is_second) OnFault(now);
    return is_second;
  }

  // Strikes that are not forgiven.
  unsigned strikes(TimePoint now) const {
    if (strikes_ == 0) return 0;
    const auto forgiven = static_cast<unsigned>((now - last_) / kForgivenAfter);
    return strikes_ - std::min(strikes_, forgiven);
  }
  // The function gets no GPU before.
  TimePoint refused_until() const { return refused_until_; }

 private:
  void SetStrikes(unsigned strikes, TimePoint now) {
    strikes_ = strikes;
    last_ = now;
    if (strikes_ < 2) return;
    Duration pause = kFirstPause;
    for (unsigned i = 2; i < strikes_ && pause < kLongestPause; ++i) pause *= 2;
    refused_until_ = now + std::min(pause, kLongestPause);
  }

  unsigned strikes_ = 0;  // at the time of the last
  TimePoint last_{};
  TimePoint refused_until_{};
  std::optional<TimePoint> last_crash_;
};

}  // namespace torpor::server
