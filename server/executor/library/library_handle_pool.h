#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "base/mutex.h"

namespace torpor::executor {

// Idle handles of a library. A handle costs tens of milliseconds and megabytes of device memory, so
// a session has a handle only while running. `kCreate` and `kDestroy` are members of `Functions`,
// the library's entry points in the executor. Destroys idle handles at the end. Thread-safe.
template <typename Functions, typename Handle, auto kCreate, auto kDestroy>
class LibraryHandlePool {
 public:
  // Empty functions mean a missing library: Take returns null. When the library creates no handle,
  // `make_room` is asked to free device memory; if it returns true, the library is asked again.
  explicit LibraryHandlePool(const Functions& functions, std::function<bool()> make_room = nullptr)
      : functions_(functions), make_room_(std::move(make_room)) {}
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
    if (functions_.*kCreate == nullptr) return nullptr;
    Handle handle = nullptr;
    if ((functions_.*kCreate)(&handle) == 0) return handle;
    const bool may_retry = make_room_ && make_room_();
    return may_retry && (functions_.*kCreate)(&handle) == 0 ? handle : nullptr;
  }

  // Takes a handle back. Requires that no work runs on the handle.
  void Return(Handle handle) {
    MutexLock lock(&mutex_);
    free_.push_back(handle);
  }

 private:
  const Functions functions_;
  const std::function<bool()> make_room_;
  Mutex mutex_;
  std::vector<Handle> free_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace torpor::executor
