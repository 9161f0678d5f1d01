#pragma once

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

  // 0 if all are taken.
  std::uint32_t Allot();
  void Free(std::uint32_t slot);
  // The next value for a command that carries `slot`.
  std::uint64_t NextValue(std::uint32_t slot);
  std::uint64_t Value(std::uint32_t slot) const {
    return page_->slots[slot].load(std::memory_order_acquire);
  }
  // Counts every value handed out as reached: the executor that would have written it is gone.
  void CompleteAll();

 private:
  wire::CompletionPage* page_ = nullptr;
  std::mutex mutex_;
  std::vector<std::uint64_t> issued_{0};  // by slot
  std::vector<std::uint32_t> free_;
};

}  // namespace torpor::shim
