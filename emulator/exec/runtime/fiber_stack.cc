#include "emulator/exec/runtime/fiber_stack.h"

#include <sys/mman.h>

#include <atomic>

namespace torpor::emulator {
namespace {

// As a thread's. A kernel of ten thousand instructions has a frame of more than a mebibyte; what no
// kernel reaches costs nothing.
constexpr std::size_t kStackBytes = std::size_t{8} << 20;
constexpr std::size_t kGuardBytes = std::size_t{64} << 10;
// Shifts each stack within a page: equally placed stacks would share the few cache lines of one
// set.
constexpr std::size_t kColours = 16;
constexpr std::size_t kColourBytes = 1024 + 64;

}  // namespace

FiberStack::FiberStack() {
  static std::atomic<std::size_t> made = 0;
  colour_ = made++ % kColours;
  void* const memory = mmap(nullptr, kStackBytes + kGuardBytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return;
  if (mprotect(memory, kGuardBytes, PROT_NONE) != 0) {
    munmap(memory, kStackBytes + kGuardBytes);
    return;
  }
  memory_ = memory;
}

FiberStack::~FiberStack() {
  if (memory_ != nullptr) munmap(memory_, kStackBytes + kGuardBytes);
}

void* FiberStack::top() const {
  return static_cast<char*>(memory_) + kStackBytes + kGuardBytes - colour_ * kColourBytes;
}

std::size_t FiberStack::size() { return kStackBytes - kColours * kColourBytes; }

}  // namespace torpor::emulator
