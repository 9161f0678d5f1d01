#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace torpor::memory {

// A bit map of free slots. Not thread-safe.
class SlotMap {
 public:
  explicit SlotMap(std::uint32_t slots);

  // Takes and returns the lowest free slot, or nullopt if all are taken.
  std::optional<std::uint32_t> Take();
  // Takes `slot`. Returns false if the slot is taken already.
  bool TakeAt(std::uint32_t slot);
  void Release(std::uint32_t slot);

  std::uint32_t free_slots() const { return free_slots_; }

 private:
  static constexpr std::uint32_t kBits = 64;

  std::uint32_t slots_;
  std::uint32_t free_slots_;
  std::vector<std::uint64_t> free_;  // a bit a slot
};

}  // namespace torpor::memory
