#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"

namespace torpor::emulator {

// Polls `ready` for up to 10 microseconds, which costs less than sleeping and being woken. Returns
// whether `ready` came true.
template <typename Ready>
bool SpinFor(Ready ready) {
  constexpr Duration kSpin = std::chrono::microseconds(10);
  if (ready()) return true;
  const TimePoint deadline = std::chrono::steady_clock::now() + kSpin;
  while (std::chrono::steady_clock::now() < deadline) {
    for (int i = 0; i < 16; ++i) {
      if (ready()) return true;
      __builtin_ia32_pause();
    }
  }
  return false;
}

// One recording of an event: becomes done once and keeps the time. Thread-safe.
class Completion {
 public:
  bool done() const { return done_.load(std::memory_order_acquire) != 0; }
  // Valid only when done.
  TimePoint time() const { return time_; }
  // Whether the context had failed when the recording finished. Valid only when done.
  bool saw_fault() const { return saw_fault_; }

  void Finish(TimePoint time, bool saw_fault = false) {
    time_ = time;
    saw_fault_ = saw_fault;
    done_.store(1, std::memory_order_release);
    done_.notify_all();
  }

  void Wait() const {
    if (SpinFor([this] { return done(); })) return;
    done_.wait(0, std::memory_order_acquire);
  }

 private:
  std::atomic<std::uint32_t> done_{0};
  TimePoint time_;
  bool saw_fault_ = false;
};

}  // namespace torpor::emulator
