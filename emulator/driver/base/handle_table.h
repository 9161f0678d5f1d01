#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace torpor::emulator {

// Maps the opaque pointers of the CUDA API to objects. Slots are recycled but never returned to the
// heap, so Get tells a destroyed handle from a live one without a lock. A pointer that never was a
// handle is undefined behaviour, as in CUDA. Thread-safe, except for using a handle while another
// thread destroys it.
template <typename T, typename Handle>
class HandleTable {
 public:
  // Shares ownership of `object` until Destroy.
  Handle Create(std::shared_ptr<T> object) {
    std::lock_guard lock(mutex_);
    Slot* slot = nullptr;
    if (free_.empty()) {
      slot = &slots_.emplace_back();
    } else {
      slot = free_.back();
      free_.pop_back();
    }
    slot->object = std::move(object);
    slot->owner.store(this, std::memory_order_release);
    return reinterpret_cast<Handle>(slot);
  }

  // Returns null for a destroyed or null handle. The pointer is valid until Destroy.
  T* Get(Handle handle) const {
    const Slot* slot = reinterpret_cast<const Slot*>(handle);
    if (slot == nullptr || slot->owner.load(std::memory_order_acquire) != this) return nullptr;
    return slot->object.get();
  }

  // As Get, but the caller shares ownership.
  std::shared_ptr<T> Share(Handle handle) const {
    return Get(handle) == nullptr ? nullptr : reinterpret_cast<const Slot*>(handle)->object;
  }

  // Invalidates the handle and passes its object, or null, to the caller.
  std::shared_ptr<T> Destroy(Handle handle) {
    std::lock_guard lock(mutex_);
    if (Get(handle) == nullptr) return nullptr;
    Slot* slot = reinterpret_cast<Slot*>(handle);
    slot->owner.store(nullptr, std::memory_order_release);
    free_.push_back(slot);
    return std::exchange(slot->object, nullptr);
  }

  // Destroys all objects for which `is_doomed` holds. Their destructors run outside the table's
  // lock.
  template <typename Predicate>
  void DestroyIf(const Predicate& is_doomed) {
    std::vector<std::shared_ptr<T>> doomed;
    std::lock_guard lock(mutex_);
    for (Slot& slot : slots_) {
      if (slot.object == nullptr || !is_doomed(*slot.object)) continue;
      slot.owner.store(nullptr, std::memory_order_release);
      free_.push_back(&slot);
      doomed.push_back(std::exchange(slot.object, nullptr));
    }
  }

 private:
  struct Slot {
    std::atomic<const HandleTable*> owner{nullptr};
    std::shared_ptr<T> object;
  };

  std::mutex mutex_;
  std::deque<Slot> slots_;
  std::vector<Slot*> free_;
};

}  // namespace torpor::emulator
