#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"

namespace torpor::sim {

// A future event of a node.
struct Timer {
  enum class Kind : std::uint8_t {
    kExecuted,      // the request on GPU `place` ends
    kTransfersEnd,  // a transfer through PCIe switch `place` ends
    kPeerArrived,   // image `key` has come to GPU `place` from another GPU
    kAllocated,     // the blocks of image `key` are allocated on GPU `place`
    kTurnedOver,    // the lease of function `key` is over and the GPU free
    kLoaded,        // the container of function `key` on GPU `place` can serve
    kWakeUp,        // the scheduler asked for this
  };
  TimePoint at;
  Kind kind = Kind::kWakeUp;
  std::uint16_t node = 0;
  std::uint32_t place = 0;
  std::uint64_t key = 0;  // tells timers of a kind apart; a timer with an old key is void
};

// A queue of timers, the earliest first; timers of one moment come in the order of Set. Time is an
// integer of nanoseconds, so the order is the same on every machine. Not thread-safe.
class Timers {
 public:
  void Set(const Timer& timer) {
    heap_.push_back({timer, next_sequence_++});
    std::push_heap(heap_.begin(), heap_.end(), IsLater);
  }
  std::optional<TimePoint> next() const {
    return heap_.empty() ? std::nullopt : std::optional(heap_.front().timer.at);
  }
  // Takes the first timer. There must be one.
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
