#pragma once

#include <mutex>
#include <vector>

namespace torpor::executor {

// Handles of a library that no session uses at the moment. A handle costs tens of milliseconds and
// megabytes of device memory, so sessions have one only while they run. `kCreate` and `kDestroy`
// are members of `Functions`, the library as it was found. Thread-safe.
template <typename Functions, typename Handle, auto kCreate, auto kDestroy>
class LibraryHandlePool {
 public:
  // Empty functions: there is no such library, and every call says so.
  explicit LibraryHandlePool(const Functions& functions) : functions_(functions) {}
  ~LibraryHandlePool() {
    for (const Handle handle : free_) (functions_.*kDestroy)(handle);
  }
  LibraryHandlePool(const LibraryHandlePool&) = delete;
  LibraryHandlePool& operator=(const LibraryHandlePool&) = delete;

  const Functions& functions() const { return functions_; }

  // On the calling thread's context, with whatever settings it had; null if the library gives none.
  Handle Take() {
    {
      std::lock_guard lock(mutex_);
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

  // Nothing runs on it any more.
  void Return(Handle handle) {
    std::lock_guard lock(mutex_);
    free_.push_back(handle);
  }

 private:
  const Functions functions_;
  std::mutex mutex_;
  std::vector<Handle> free_;  // guarded by mutex_
};

}  // namespace torpor::executor
