#pragma once

#include <mutex>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace torpor {

// Wraps absl::Mutex for ThreadSanitizer builds: the system's Abseil is built without the sanitizer,
// which therefore sees no ordering by Abseil's locks. Adds no code to other builds. Waits are by
// condition variable: Abseil evaluates an absl::Condition in whichever thread unlocks, unseen.
class ABSL_LOCKABLE Mutex {
 public:
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() {
    mutex_.Lock();
    Acquired();
  }
  bool TryLock() ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) {
    const bool is_held = mutex_.TryLock();
    if (is_held) Acquired();
    return is_held;
  }
  void Unlock() ABSL_UNLOCK_FUNCTION() {
    Releasing();
    mutex_.Unlock();
  }
  void ReaderLock() ABSL_SHARED_LOCK_FUNCTION() {
    mutex_.ReaderLock();
    Acquired();
  }
  void ReaderUnlock() ABSL_UNLOCK_FUNCTION() {
    Releasing();
    mutex_.ReaderUnlock();
  }
  // For a thread that holds the mutex: releases the mutex, waits until `signal` or until `timeout`
  // has passed, and holds the mutex again on return. May return early; call in a loop.
  void WaitFor(absl::CondVar& signal, absl::Duration timeout) ABSL_SHARED_LOCKS_REQUIRED(this) {
    Releasing();
    signal.WaitWithTimeout(&mutex_, timeout);
    Acquired();
  }

 private:
#if defined(__SANITIZE_THREAD__)
  void Acquired() { __tsan_acquire(this); }
  void Releasing() { __tsan_release(this); }
#else
  void Acquired() {}
  void Releasing() {}
#endif

  absl::Mutex mutex_;
};

// A mutex for which a thread can wait until a deadline; absl::Mutex has no such wait.
class ABSL_LOCKABLE TimedMutex {
 public:
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  bool TryLock() ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) { return mutex_.try_lock(); }
  // Returns false if other threads hold the mutex until `deadline`.
  bool TryLockUntil(TimePoint deadline) ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) {
    return mutex_.try_lock_until(deadline);
  }
  void Unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }

 private:
  std::timed_mutex mutex_;
};

// Holds a mutex exclusively from construction to destruction.
template <typename AnyMutex>
class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(AnyMutex* mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(*mutex) {
    mutex_.Lock();
  }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  AnyMutex& mutex_;
};

// Holds a mutex shared with other readers from construction to destruction.
class ABSL_SCOPED_LOCKABLE ReaderMutexLock {
 public:
  explicit ReaderMutexLock(Mutex* mutex) ABSL_SHARED_LOCK_FUNCTION(mutex) : mutex_(*mutex) {
    mutex_.ReaderLock();
  }
  ~ReaderMutexLock() ABSL_UNLOCK_FUNCTION() { mutex_.ReaderUnlock(); }
  ReaderMutexLock(const ReaderMutexLock&) = delete;
  ReaderMutexLock& operator=(const ReaderMutexLock&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace torpor
