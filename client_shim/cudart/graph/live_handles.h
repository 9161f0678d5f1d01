#pragma once

#include <mutex>
#include <unordered_set>

namespace torpor::shim {

// The live objects behind a kind of handle, to reject invalid handles before following the pointer.
// Thread-safe.
class LiveHandles {
 public:
  void Add(const void* object) {
    std::lock_guard lock(mutex_);
    live_.insert(object);
  }
  // Returns false if the object was not in the set.
  bool Remove(const void* object) {
    std::lock_guard lock(mutex_);
    return live_.erase(object) == 1;
  }
  bool Contains(const void* object) {
    std::lock_guard lock(mutex_);
    return live_.contains(object);
  }

 private:
  std::mutex mutex_;
  std::unordered_set<const void*> live_;
};

}  // namespace torpor::shim
