#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "proto/wire/session_window.h"

namespace torpor::shim {

// Allots the slots of the completion page. Values of a slot only grow, through all its owners,
// so that a late write for an earlier owner is never taken for the present one's. Slot 0 means
// "none" in commands and is not allotted. Thread-safe.
class CompletionSlots {
 public:
  void Attach(wire::CompletionPage* page) { page_ = page; }

  // Kept for the payload ring, whose pieces wait for one: a program's live events may not take
  // them. Enough that a transfer does not notice.
  static constexpr std::size_t kKeptForRing = 256;

  // 0 if all but those kept for the ring are taken.
  std::uint32_t Allot() { return AllotOf(wire::kCompletionSlots - kKeptForRing); }
  // 0 if all are taken.
  std::uint32_t AllotForRing() { return AllotOf(wire::kCompletionSlots); }
  void Free(std::uint32_t slot);
  // The next value for a command that carries `slot`.
  std::uint64_t NextValue(std::uint32_t slot);
  std::uint64_t Value(std::uint32_t slot) const {
    return page_->slots[slot].load(std::memory_order_acquire);
  }
  // Counts every value handed out as reached: the executor that would have written it is gone.
  void CompleteAll();

 private:
  std::uint32_t AllotOf(std::size_t slots);

  wire::CompletionPage* page_ = nullptr;
  std::mutex mutex_;
  std::vector<std::uint64_t> issued_{0};  // by slot
  std::vector<std::uint32_t> free_;
};

}  // namespace torpor::shim
