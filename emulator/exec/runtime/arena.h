#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "emulator/exec/interface/arena_layout.h"

namespace torpor::emulator {

// The memory of a resident block, and the shared windows of a cluster's other blocks if this is the
// first. Every 32-bit offset from any address in a shared window, plus or minus kMaxSharedOffset,
// lies inside the slot: in a window or in inaccessible memory.
struct ArenaSlot {
  std::uint8_t* shared_end = nullptr;  // the window ends here; buffers are placed at its end
  std::uint32_t shared_windows = 1;    // accessible now, kClusterStride apart
  std::uint8_t* parameters = nullptr;
  std::uint8_t* local = nullptr;  // kLocalWindowBytes, backed when touched
  std::size_t index = 0;
};

// A range of addresses for the shared, local and parameter memory of all blocks, and for no other
// memory: generated code compares generic addresses with the bounds. Thread-safe.
class Arena {
 public:
  static Arena& Instance();

  // Returns a slot without memory (shared_end is null) if all address space is in use.
  ArenaSlot Acquire();
  void Release(const ArenaSlot& slot);
  // Makes `windows` shared windows of the slot accessible, kMaxClusterBlocks at most. Returns false
  // if the system denies the memory.
  static bool OpenWindows(ArenaSlot& slot, std::uint32_t windows);

  std::uint64_t begin() const { return begin_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  Arena();

  std::uint64_t begin_ = 0;
  std::uint64_t bytes_ = 0;
  std::mutex mutex_;
  std::size_t made_ = 0;         // guarded by mutex_
  std::vector<ArenaSlot> free_;  // guarded by mutex_
};

}  // namespace torpor::emulator
