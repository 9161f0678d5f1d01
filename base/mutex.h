#pragma once

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace torpor {

// Wraps absl::Mutex for ThreadSanitizer builds: the system's Abseil is built without the sanitizer,
// which therefore sees no ordering by Abseil's locks. Adds no code to other builds.
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
  // Waits until `condition` is true or `timeout` has passed, then returns whether `condition` is
  // true. Acquires the mutex in both cases.
  bool LockWhenWithTimeout(const absl::Condition& condition, absl::Duration timeout)
      ABSL_EXCLUSIVE_LOCK_FUNCTION() {
    const bool is_true = mutex_.LockWhenWithTimeout(condition, timeout);
    Acquired();
    return is_true;
  }
  // Like LockWhenWithTimeout, for a thread that holds the mutex: releases the mutex while waiting
  // and holds the mutex again on return.
  bool AwaitWithTimeout(const absl::Condition& condition, absl::Duration timeout)
      ABSL_SHARED_LOCKS_REQUIRED(this) {
    Releasing();
    const bool is_true = mutex_.AwaitWithTimeout(condition, timeout);
    Acquired();
    return is_true;
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

// Holds a mutex exclusively from construction to destruction.
class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex* mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(*mutex) {
    mutex_.Lock();
  }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
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
