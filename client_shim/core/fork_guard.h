#pragma once

namespace torpor::shim {

// In a child of fork() the session's threads are gone and its sockets are the parent's: every
// CUDA call must fail and nothing may be touched. Watched descriptors are closed in the child, so
// that the daemon sees the parent's end even while the child lives on.
class ForkGuard {
 public:
  // Registers with fork, once a process.
  static void Install();
  static bool InChild();
  static void Watch(int fd);
  static void Unwatch(int fd);
};

}  // namespace torpor::shim
