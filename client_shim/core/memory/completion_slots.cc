#include "client_shim/core/memory/completion_slots.h"

namespace torpor::shim {

std::uint32_t CompletionSlots::AllotOf(std::size_t slots) {
  std::lock_guard lock(mutex_);
  const std::size_t taken = issued_.size() - free_.size();  // with slot 0
  if (taken >= slots) return 0;
  if (!free_.empty()) {
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    return slot;
  }
  issued_.push_back(0);
  return static_cast<std::uint32_t>(issued_.size() - 1);
}

void CompletionSlots::Free(std::uint32_t slot) {
  if (slot == 0) return;
  std::lock_guard lock(mutex_);
  free_.push_back(slot);
}

std::uint64_t CompletionSlots::NextValue(std::uint32_t slot) {
  std::lock_guard lock(mutex_);
  return ++issued_[slot];
}

void CompletionSlots::CompleteAll() {
  std::lock_guard lock(mutex_);
  for (std::size_t slot = 1; slot < issued_.size(); ++slot) {
    // A slot with a higher value belongs to an event of several processes (SharedEvent) and stays.
    if (Value(static_cast<std::uint32_t>(slot)) < issued_[slot])
      page_->slots[slot].store(issued_[slot], std::memory_order_release);
  }
}

}  // namespace torpor::shim
