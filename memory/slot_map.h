#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace torpor::memory {

// Which of n slots of one size are free. Not thread-safe.
class SlotMap {
 public:
  explicit SlotMap(std::uint32_t slots);

  // The lowest free slot, taken.
  std::optional<std::uint32_t> Take();
  // Takes exactly that one; false where it is not free.
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
