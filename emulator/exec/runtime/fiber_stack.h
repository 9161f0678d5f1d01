#pragma once

#include <cstddef>

namespace torpor::emulator {

// A stack for one warp, with inaccessible pages below it: running over its end faults.
class FiberStack {
 public:
  FiberStack();
  ~FiberStack();
  FiberStack(const FiberStack&) = delete;
  FiberStack& operator=(const FiberStack&) = delete;

  bool valid() const { return memory_ != nullptr; }
  void* top() const;
  static std::size_t size();

 private:
  void* memory_ = nullptr;
  std::size_t colour_ = 0;
};

}  // namespace torpor::emulator
