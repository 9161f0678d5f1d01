#pragma once

#include <mutex>

namespace torpor::shim {

// The lock on the graphs of programs and on captures; locked while a GraphLock lives. CUDA forbids
// programs to use a graph from several threads at once, but allows captures from several threads.
// A thread may hold the lock while an executor frees memory or a launch is awaited, so no step of a
// launch takes the lock. Recursive, since deleting a graph calls functions of the program.
class GraphLock {
 public:
  GraphLock() : lock_(Mutex()) {}

 private:
  static std::recursive_mutex& Mutex() {
    static auto* const mutex = new std::recursive_mutex();
    return *mutex;
  }

  std::lock_guard<std::recursive_mutex> lock_;
};

}  // namespace torpor::shim
