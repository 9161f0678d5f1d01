#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace torpor::emulator {

// Turns objects into the opaque pointers of the CUDA API and back. Slots are recycled but never
// given back to the heap, so that a destroyed handle is told from a live one without a lock; a
// pointer that never was a handle is the caller's undefined behaviour, as in CUDA.
// Thread-safe, but for using a handle while another thread destroys it.
template <typename T, typename Handle>
class HandleTable {
 public:
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

  // Null for a destroyed or null handle.
  T* Get(Handle handle) const {
    const Slot* slot = reinterpret_cast<const Slot*>(handle);
    if (slot == nullptr || slot->owner.load(std::memory_order_acquire) != this) return nullptr;
    return slot->object.get();
  }

  std::shared_ptr<T> Share(Handle handle) const {
    return Get(handle) == nullptr ? nullptr : reinterpret_cast<const Slot*>(handle)->object;
  }

  // The handle is dead afterwards; its object, or null, is the caller's.
  std::shared_ptr<T> Destroy(Handle handle) {
    std::lock_guard lock(mutex_);
    if (Get(handle) == nullptr) return nullptr;
    Slot* slot = reinterpret_cast<Slot*>(handle);
    slot->owner.store(nullptr, std::memory_order_release);
    free_.push_back(slot);
    return std::exchange(slot->object, nullptr);
  }

  // Destroys all objects that `is_doomed`; they end outside of the table's lock.
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
