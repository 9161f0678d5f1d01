#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"

namespace torpor::sim {

// Something of a node that is due at some moment.
struct Timer {
  enum class Kind : std::uint8_t {
    kExecuted,      // the request of `place`, a GPU
    kTransfersEnd,  // some of `place`, a PCIe switch
    kPeerArrived,   // the image from another GPU on `place`, a GPU
    kAllocated,     // the blocks on `place`, a GPU
    kTurnedOver,    // `key`, a function whose request is over: its GPU is free for others
    kLoaded,        // `key`, a function that was started cold
    kWakeUp,        // of the scheduler
  };
  TimePoint at;
  Kind kind = Kind::kWakeUp;
  std::uint16_t node = 0;
  std::uint32_t place = 0;
  std::uint64_t key = 0;  // which of several such timers; an old one is to be passed over
};

// The timers that are set, the earliest first, those of one moment in the order of setting.
class Timers {
 public:
  void Set(const Timer& timer) {
    heap_.push_back({timer, next_sequence_++});
    std::push_heap(heap_.begin(), heap_.end(), IsLater);
  }
  std::optional<TimePoint> next() const {
    return heap_.empty() ? std::nullopt : std::optional(heap_.front().timer.at);
  }
  // There must be one.
  Timer Take() {
    std::pop_heap(heap_.begin(), heap_.end(), IsLater);
    const Timer timer = heap_.back().timer;
    heap_.pop_back();
    return timer;
  }

 private:
  struct Entry {
    Timer timer;
    std::uint64_t sequence = 0;
  };
  static bool IsLater(const Entry& a, const Entry& b) {
    return a.timer.at != b.timer.at ? a.timer.at > b.timer.at : a.sequence > b.sequence;
  }

  std::vector<Entry> heap_;
  std::uint64_t next_sequence_ = 0;
};

}  // namespace torpor::sim
