#pragma once

#include <mutex>

namespace torpor::shim {

// Guards the graphs that programs hold and what captures add to them. CUDA leaves it to programs
// not to use one graph from several threads; captures from several threads are its own affair.
// It may be held while an executor frees memory or a launch is awaited, so nothing that a launch
// itself does takes it. Recursive: the end of a graph calls functions of the program.
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
