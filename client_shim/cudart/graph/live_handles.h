#pragma once

#include <mutex>
#include <unordered_set>

namespace torpor::shim {

// The objects behind a kind of handle that programs hold, so that a handle that is none is told
// before it is followed. Thread-safe.
class LiveHandles {
 public:
  void Add(const void* object) {
    std::lock_guard lock(mutex_);
    live_.insert(object);
  }
  // False: it was not there.
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
