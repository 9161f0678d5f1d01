#pragma once

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"

namespace torpor::soak {

// Lets requests through while open, and counts them. Thread-safe.
class Gate {
 public:
  // Waits while the gate is closed.
  void Pass() {
    const MutexLock lock(&mutex_);
    while (!is_open_) mutex_.WaitFor(opened_, absl::InfiniteDuration());
    ++passed_;
  }

  void Close() {
    const MutexLock lock(&mutex_);
    is_open_ = false;
  }
  void Open() {
    const MutexLock lock(&mutex_);
    is_open_ = true;
    opened_.SignalAll();
  }
  std::uint64_t passed() const {
    const MutexLock lock(&mutex_);
    return passed_;
  }

 private:
  mutable Mutex mutex_;
  absl::CondVar opened_;
  bool is_open_ ABSL_GUARDED_BY(mutex_) = true;
  std::uint64_t passed_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace torpor::soak
