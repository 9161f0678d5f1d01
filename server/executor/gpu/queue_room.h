#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>

namespace torpor::executor {

// The room for unfinished work in a context's queues, shared by the sessions that have some. A
// driver's launch waits, and may hold up other threads' calls meanwhile, once about 1024 pieces of
// work are unfinished; so sessions stay below. Thread-safe.
class QueueRoom {
 public:
  static constexpr std::size_t kPieces = 896;
  // A session's share however many others there are: none must wait for another's work, which may
  // wait for the session's own.
  static constexpr std::size_t kLeastShare = 64;

  // Begin and end of a session's having work.
  void Enter() { users_.fetch_add(1, std::memory_order_relaxed); }
  void Leave() { users_.fetch_sub(1, std::memory_order_relaxed); }

  // Returns the pieces of work that each session may have unfinished.
  std::size_t share() const {
    const std::size_t users = std::max<std::size_t>(users_.load(std::memory_order_relaxed), 1);
    return std::max(kPieces / users, kLeastShare);
  }

 private:
  std::atomic<std::size_t> users_{0};
};

}  // namespace torpor::executor
