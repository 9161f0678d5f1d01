#pragma once

#include <atomic>

namespace torpor::shim {

// Guards sessions in children of fork(), where the service threads are gone and the sockets belong
// to the parent: every CUDA call must fail and touch nothing. The child closes watched descriptors,
// so that the daemon sees the parent's end even while the child lives on. Thread-safe.
class ForkGuard {
 public:
  // Registers with fork; repeated calls have no effect.
  static void Install();
  static bool InChild() { return in_child_.load(std::memory_order_relaxed); }
  static void Watch(int fd);
  static void Unwatch(int fd);

 private:
  static void AfterForkInChild();

  static constinit inline std::atomic<bool> in_child_{false};
};

}  // namespace torpor::shim
