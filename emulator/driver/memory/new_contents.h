#pragma once

#include <atomic>
#include <cstring>

#include "base/units.h"

namespace torpor::emulator {

// Fills new GPU memory with bytes that no program expects, as a real GPU's memory holds what was
// there before. The first GiB alone: each filled page takes memory of the host. Thread-safe.
class NewContents {
 public:
  static constexpr unsigned char kByte = 0xA5;
  static constexpr Bytes kMaxBytes = kGiB;

  void Fill(void* memory, Bytes size) {
    if (filled_.fetch_add(size, std::memory_order_relaxed) + size > kMaxBytes) return;
    std::memset(memory, kByte, size);
  }

 private:
  std::atomic<Bytes> filled_{0};
};

}  // namespace torpor::emulator
