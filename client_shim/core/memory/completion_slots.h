#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "proto/wire/session_window.h"

namespace torpor::shim {

// Allots the slots of the completion page. A slot's values only grow, through all its owners, so
// that a late write for an earlier owner never looks like a write for the present owner. Slot 0
// means "no slot" in commands and is never allotted. Thread-safe.
class CompletionSlots {
 public:
  // `page` must outlive this object. Call before all other functions.
  void Attach(wire::CompletionPage* page) { page_ = page; }

  // Slots kept for the payload ring, whose pieces wait for a slot: a program's live events must not
  // exhaust the page. The number is large enough not to slow a transfer.
  static constexpr std::size_t kKeptForRing = 256;

  // Returns 0 if all slots but the ring's are taken.
  std::uint32_t Allot() { return AllotOf(wire::kCompletionSlots - kKeptForRing); }
  // Returns 0 if all slots are taken.
  std::uint32_t AllotForRing() { return AllotOf(wire::kCompletionSlots); }
  void Free(std::uint32_t slot);
  // Returns the next value for a command that carries `slot`.
  std::uint64_t NextValue(std::uint32_t slot);
  std::uint64_t Value(std::uint32_t slot) const {
    return page_->slots[slot].load(std::memory_order_acquire);
  }
  // Whether the executor has said of the last upload with this slot that the host image has it for
  // good.
  bool IsSavedUpload(std::uint32_t slot) const {
    constexpr std::uint32_t kBits = 64;
    const std::uint64_t bits = page_->saved_uploads[slot / kBits].load(std::memory_order_acquire);
    return (bits >> slot % kBits & 1) != 0;
  }
  // Counts every issued value as reached, after the loss of the executor that should write them.
  void CompleteAll();

 private:
  std::uint32_t AllotOf(std::size_t slots);

  wire::CompletionPage* page_ = nullptr;
  std::mutex mutex_;
  std::vector<std::uint64_t> issued_{0};  // by slot
  std::vector<std::uint32_t> free_;
};

}  // namespace torpor::shim
