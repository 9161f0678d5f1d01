#pragma once

#include <atomic>
#include <cstdint>

namespace torpor::emulator {

// A hardware queue that several streams share: their work begins in the order in which it entered.
// Thread-safe.
class IssueQueue {
 public:
  // Returns the turn of new work.
  std::uint64_t Enter() { return entered_.fetch_add(1, std::memory_order_relaxed); }
  // Whether all work that entered before `turn` has begun.
  bool IsTurn(std::uint64_t turn) const { return begun_.load(std::memory_order_acquire) == turn; }
  void WaitForTurn(std::uint64_t turn) const {
    for (std::uint64_t begun = begun_.load(std::memory_order_acquire); begun != turn;
         begun = begun_.load(std::memory_order_acquire)) {
      begun_.wait(begun, std::memory_order_acquire);
    }
  }
  // The work whose turn it is has begun.
  void Begin() {
    begun_.fetch_add(1, std::memory_order_release);
    begun_.notify_all();
  }

 private:
  std::atomic<std::uint64_t> entered_{0};
  std::atomic<std::uint64_t> begun_{0};
};

}  // namespace torpor::emulator
