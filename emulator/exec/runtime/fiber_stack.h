#pragma once

#include <cstddef>

namespace torpor::emulator {

// Stack of a warp, with inaccessible pages below: an overflow faults. valid() is false if memory
// lacks.
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
