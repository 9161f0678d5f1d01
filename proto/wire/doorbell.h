#pragma once

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <cstdint>

// Waiting for the other side of a ring. A sleeper announces in a word of the shared page what it
// waits for, looks once more, and sleeps on the word; a peer that brings something looks at the
// word afterwards. All accesses to word and cursors are sequentially consistent, so that one of the
// two always sees the other, and nobody enters the kernel while nobody sleeps.
namespace torpor::wire {

using WaitWord = std::atomic<std::uint32_t>;
static_assert(sizeof(WaitWord) == sizeof(std::uint32_t));

// Returns the bits of `events` that the sleeper waits for, and clears them.
inline std::uint32_t TakeWaits(WaitWord& word, std::uint32_t events) {
  if ((word.load(std::memory_order_seq_cst) & events) == 0) return 0;
  return word.fetch_and(~events, std::memory_order_seq_cst) & events;
}

inline void WakeSleepers(WaitWord& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

// Sleeps until `is_ready()` may be true: until the peer has taken `wait`, or for no reason. Call in
// a loop. `is_ready` looks at the shared memory.
template <typename Ready>
void SleepOnce(WaitWord& word, std::uint32_t wait, const Ready& is_ready) {
  const std::uint32_t seen = word.fetch_or(wait, std::memory_order_seq_cst) | wait;
  if (!is_ready()) syscall(SYS_futex, &word, FUTEX_WAIT, seen, nullptr, nullptr, 0);
  word.fetch_and(~wait, std::memory_order_seq_cst);
}

// Waits by looking before sleeping, for as long as recent waits have been worth that: after a wait
// that ended within kMaxSpin the next one looks for kMaxSpin, after longer ones each time for half
// as long. Not thread-safe.
class AdaptiveSpin {
 public:
  // A little more than a wake-up costs on an idle core: looking longer would cost more than sleep.
  static constexpr std::chrono::microseconds kMaxSpin{60};
  static constexpr std::chrono::microseconds kMinSpin{1};

  // Returns when `is_ready()`; calls `sleep`, which sleeps at most until then, as often as needed.
  template <typename Ready, typename Sleep>
  void Wait(const Ready& is_ready, const Sleep& sleep) {
    if (is_ready()) return;
    const Time begin = Clock::now();
    if (!Look(is_ready, begin)) {
      while (!is_ready()) sleep();
    }
    const bool was_short = Clock::now() - begin <= kMaxSpin;
    limit_ = was_short ? Span(kMaxSpin) : std::max<Span>(limit_ / 2, kMinSpin);
  }

 private:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;
  using Span = Clock::duration;
  static constexpr int kLooksBetweenClocks = 16;
  static constexpr std::chrono::microseconds kUnyielding{4};

  // Returns whether `is_ready()` came true within the limit.
  template <typename Ready>
  bool Look(const Ready& is_ready, Time begin) const {
    for (;;) {
      for (int look = 0; look < kLooksBetweenClocks; ++look) {
        Pause();
        if (is_ready()) return true;
      }
      const Span passed = Clock::now() - begin;
      if (passed >= limit_) return false;
      // On few cores the peer may need this one.
      if (passed >= kUnyielding) sched_yield();
    }
  }

  static void Pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }

  Span limit_ = kMaxSpin;
};

}  // namespace torpor::wire
