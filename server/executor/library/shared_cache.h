#pragma once

#include <cstddef>
#include <functional>
#include <iterator>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "base/mutex.h"

namespace torpor::executor {

// Values that cost much to make, shared by all sessions. A key is all that a value is made of,
// compared byte by byte: keys come from clients, who could make hashes meet. Beyond the bounds, the
// values that were not asked for the longest go; users keep theirs. Thread-safe.
template <typename Value>
class SharedCache {
 public:
  struct Bounds {
    std::size_t entries = 0;
    std::size_t key_bytes = 0;  // of all keys
  };
  explicit SharedCache(const Bounds& bounds) : bounds_(bounds) {}

  // Returns the value of `key`, made by `make` at the first call. Other callers with the same key
  // wait meanwhile, callers with other keys do not.
  using Make = std::function<std::shared_ptr<const Value>()>;
  std::shared_ptr<const Value> Get(std::string key, const Make& make) {
    const std::shared_ptr<Slot> slot = SlotOf(std::move(key));
    MutexLock lock(&slot->making);
    if (slot->value == nullptr) slot->value = make();
    return slot->value;
  }

  std::size_t size() const {
    MutexLock lock(&mutex_);
    return slots_.size();
  }

 private:
  struct Slot {
    Mutex making;
    std::shared_ptr<const Value> value ABSL_GUARDED_BY(making);
  };
  struct Entry {
    std::string key;
    std::shared_ptr<Slot> slot;
  };
  using Entries = std::list<Entry>;  // the last used first

  std::shared_ptr<Slot> SlotOf(std::string key) ABSL_LOCKS_EXCLUDED(mutex_) {
    Entries unused;  // destroyed without the lock
    MutexLock lock(&mutex_);
    if (const auto found = slots_.find(key); found != slots_.end()) {
      entries_.splice(entries_.begin(), entries_, found->second);
      return found->second->slot;
    }
    key_bytes_ += key.size();
    entries_.push_front({std::move(key), std::make_shared<Slot>()});
    slots_.emplace(entries_.front().key, entries_.begin());
    while (entries_.size() > 1 &&
           (entries_.size() > bounds_.entries || key_bytes_ > bounds_.key_bytes)) {
      slots_.erase(entries_.back().key);
      key_bytes_ -= entries_.back().key.size();
      unused.splice(unused.begin(), entries_, std::prev(entries_.end()));
    }
    return entries_.front().slot;
  }

  const Bounds bounds_;
  mutable Mutex mutex_;
  Entries entries_ ABSL_GUARDED_BY(mutex_);
  // Keys point into entries_.
  absl::flat_hash_map<std::string_view, typename Entries::iterator> slots_ ABSL_GUARDED_BY(mutex_);
  std::size_t key_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace torpor::executor
