#include "emulator/node/memory_budget.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

namespace torpor::emulator {
namespace {

// Holds a mutex shared by processes. If a holder dies, the next process takes over.
class RobustLock {
 public:
  explicit RobustLock(pthread_mutex_t& mutex) : mutex_(mutex) {
    if (pthread_mutex_lock(&mutex_) == EOWNERDEAD) pthread_mutex_consistent(&mutex_);
  }
  ~RobustLock() { pthread_mutex_unlock(&mutex_); }
  RobustLock(const RobustLock&) = delete;
  RobustLock& operator=(const RobustLock&) = delete;

 private:
  pthread_mutex_t& mutex_;
};

}  // namespace

// Looks for dead processes only if the memory does not suffice.
bool MemoryBudget::Take(Bytes size) {
  const RobustLock lock(node_.state().memory.mutex);
  if (TakeLocked(size)) return true;
  node_.ReclaimOfDead(place_);
  return TakeLocked(size);
}

// Call with the memory's mutex held.
bool MemoryBudget::TakeLocked(Bytes size) {
  const Bytes used = Used();
  const Bytes most = std::min(total_, given_out_);
  if (used > most || size > most - used) return false;
  node_.state().memory.taken[place_][node_.slot()].fetch_add(size, std::memory_order_relaxed);
  return true;
}

// Needs no lock: a process changes only its own number.
void MemoryBudget::Return(Bytes size) {
  node_.state().memory.taken[place_][node_.slot()].fetch_sub(size, std::memory_order_relaxed);
}

Bytes MemoryBudget::free() {
  // Checking for dead processes makes them look alive to other processes for a moment.
  const RobustLock lock(node_.state().memory.mutex);
  node_.ReclaimOfDead(place_);
  return total_ - std::min(Used(), total_);
}

Bytes MemoryBudget::Used() const {
  Bytes used = 0;
  for (const auto& taken : node_.state().memory.taken[place_]) {
    used += taken.load(std::memory_order_relaxed);
  }
  return used;
}

}  // namespace torpor::emulator
