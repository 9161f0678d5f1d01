#include "emulator/exec/fiber_stack.h"

#include <sys/mman.h>

namespace torpor::emulator {
namespace {

constexpr std::size_t kStackBytes = std::size_t{1} << 20;
constexpr std::size_t kGuardBytes = std::size_t{64} << 10;

}  // namespace

FiberStack::FiberStack() {
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

void* FiberStack::top() const { return static_cast<char*>(memory_) + kStackBytes + kGuardBytes; }

std::size_t FiberStack::size() { return kStackBytes; }

}  // namespace torpor::emulator
