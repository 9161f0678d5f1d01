#pragma once

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"

namespace torpor::soak {

// What every request passes before it is sent: lets it through, unless the gate is closed, and
// counts it. Thread-safe.
class Gate {
 public:
  // Waits while the gate is closed.
  void Pass() {
    mutex_.LockWhenWithTimeout(absl::Condition(&is_open_), absl::InfiniteDuration());
    ++passed_;
    mutex_.Unlock();
  }

  void Close() {
    const MutexLock lock(&mutex_);
    is_open_ = false;
  }
  void Open() {
    const MutexLock lock(&mutex_);
    is_open_ = true;
  }
  std::uint64_t passed() const {
    const MutexLock lock(&mutex_);
    return passed_;
  }

 private:
  mutable Mutex mutex_;
  bool is_open_ ABSL_GUARDED_BY(mutex_) = true;
  std::uint64_t passed_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace torpor::soak
