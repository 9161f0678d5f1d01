#include "memory/slot_map.h"

#include <bit>

namespace torpor::memory {

SlotMap::SlotMap(std::uint32_t slots)
    : slots_(slots), free_slots_(slots), free_((slots + kBits - 1) / kBits, ~std::uint64_t{0}) {
  if (slots % kBits != 0) free_.back() = (std::uint64_t{1} << slots % kBits) - 1;
}

std::optional<std::uint32_t> SlotMap::Take() {
  for (std::uint32_t word = 0; word < free_.size(); ++word) {
    if (free_[word] == 0) continue;
    const auto slot = word * kBits + static_cast<std::uint32_t>(std::countr_zero(free_[word]));
    TakeAt(slot);
    return slot;
  }
  return std::nullopt;
}

bool SlotMap::TakeAt(std::uint32_t slot) {
  if (slot >= slots_) return false;
  const std::uint64_t bit = std::uint64_t{1} << slot % kBits;
  if ((free_[slot / kBits] & bit) == 0) return false;
  free_[slot / kBits] &= ~bit;
  --free_slots_;
  return true;
}

void SlotMap::Release(std::uint32_t slot) {
  free_[slot / kBits] |= std::uint64_t{1} << slot % kBits;
  ++free_slots_;
}

}  // namespace torpor::memory
