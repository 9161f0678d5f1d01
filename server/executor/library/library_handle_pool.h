#pragma once

#include <vector>

#include "base/mutex.h"

namespace torpor::executor {

// Idle handles of a library. A handle costs tens of milliseconds and megabytes of device memory, so
// a session has a handle only while running. `kCreate` and `kDestroy` are members of `Functions`,
// the library's entry points in the executor. Destroys idle handles at the end. Thread-safe.
template <typename Functions, typename Handle, auto kCreate, auto kDestroy>
class LibraryHandlePool {
 public:
  // Empty functions mean a missing library: Take returns null.
  explicit LibraryHandlePool(const Functions& functions) : functions_(functions) {}
  ~LibraryHandlePool() {
    for (const Handle handle : free_) (functions_.*kDestroy)(handle);
  }
  LibraryHandlePool(const LibraryHandlePool&) = delete;
  LibraryHandlePool& operator=(const LibraryHandlePool&) = delete;

  const Functions& functions() const { return functions_; }

  // Returns a handle on the calling thread's context, with the settings of the last user; null if
  // the library creates none.
  Handle Take() {
    {
      MutexLock lock(&mutex_);
      if (!free_.empty()) {
        const Handle handle = free_.back();
        free_.pop_back();
        return handle;
      }
    }
    Handle handle = nullptr;
    if (functions_.*kCreate == nullptr || (functions_.*kCreate)(&handle) != 0) return nullptr;
    return handle;
  }

  // Takes a handle back. Requires that no work runs on the handle.
  void Return(Handle handle) {
    MutexLock lock(&mutex_);
    free_.push_back(handle);
  }

 private:
  const Functions functions_;
  Mutex mutex_;
  std::vector<Handle> free_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace torpor::executor
