#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "client_shim/core/client_core.h"
#include "client_shim/core/memory/completion_slots.h"

namespace torpor::shim {

// Hands out the window's payload bytes in order, as a ring. A piece becomes free when its
// completion slot has reached its value, or by Release. Room returns oldest piece first.
// Thread-safe.
class PayloadRing {
 public:
  explicit PayloadRing(CompletionSlots& slots) : slots_(slots) {}

  // Calls `before_reuse` with the offset of each piece whose place is about to be used again; on
  // any thread, and not for long. Call before all other functions.
  void SetBeforeReuse(std::function<void(std::uint64_t offset)> before_reuse) {
    before_reuse_ = std::move(before_reuse);
  }

  // The ring is [begin, end) of the window, both multiples of 64.
  void Attach(std::uint8_t* window, std::uint64_t begin, std::uint64_t end);

  // Hands out at most `bytes` bytes, and at most a quarter of the ring, so that the executor reads
  // one piece while the client fills the next. False if there is no room now.
  bool Acquire(std::uint64_t bytes, WindowPiece& piece);
  // The byte at this offset of the window.
  const std::uint8_t* At(std::uint64_t offset) const { return window_ + offset; }
  void Release(const WindowPiece& piece);
  // Notes that the piece's command was sent: the piece's slot decides from now on.
  void Submitted(const WindowPiece& piece);
  // Frees all submitted pieces after the loss of the executor, but no piece that is being filled.
  void DropSubmitted();

 private:
  enum class State { kFilling, kSubmitted, kFree };
  struct Entry {
    std::uint64_t offset = 0;
    std::uint64_t end = 0;
    std::uint32_t slot = 0;
    std::uint64_t value = 0;
    State state = State::kFilling;
  };
  void Reclaim();
  std::uint64_t ContiguousRoom();
  Entry* Find(std::uint64_t offset);

  CompletionSlots& slots_;
  std::function<void(std::uint64_t)> before_reuse_;  // may be empty
  std::mutex mutex_;
  std::uint8_t* window_ = nullptr;
  std::uint64_t begin_ = 0;
  std::uint64_t end_ = 0;
  std::uint64_t next_ = 0;     // where the next piece begins
  std::deque<Entry> entries_;  // in the order of their places, oldest first
};

}  // namespace torpor::shim
