#include "emulator/exec/runtime/arena.h"

#include <sys/mman.h>

#include "emulator/exec/interface/launch_config.h"

namespace torpor::emulator {
namespace {

constexpr std::size_t kWindowGuardBytes =
    (std::size_t{2} << 30) + static_cast<std::size_t>(kMaxSharedOffset);
constexpr std::size_t kSlotBytes = std::size_t{8} << 30;
constexpr std::size_t kMaxSlots = 512;
constexpr std::size_t kSharedBegin = kWindowGuardBytes;
constexpr std::size_t kParameterBegin =
    kSharedBegin + kMaxClusterBlocks * kClusterStride + kWindowGuardBytes;
constexpr std::size_t kLocalBegin = kParameterBegin + 2 * kParameterWindowBytes;
static_assert(kLocalBegin + kLocalWindowBytes + kParameterWindowBytes < kSlotBytes);

}  // namespace

// Never destroyed: kernels may run until the process ends.
Arena& Arena::Instance() {
  static Arena* const arena = new Arena();
  return *arena;
}

// Reserves the whole range once; the bounds never change.
Arena::Arena() {
  // Address space is cheap, but a limit (ulimit -v) may forbid so much of it.
  for (std::size_t slots = kMaxSlots; slots > 0 && begin_ == 0; slots /= 2) {
    void* const memory = mmap(nullptr, slots * kSlotBytes, PROT_NONE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) continue;
    begin_ = reinterpret_cast<std::uint64_t>(memory);
    bytes_ = slots * kSlotBytes;
  }
}

// Makes the windows of a new slot accessible; all memory around stays a guard.
ArenaSlot Arena::Acquire() {
  const std::lock_guard lock(mutex_);
  if (!free_.empty()) {
    const ArenaSlot slot = free_.back();
    free_.pop_back();
    return slot;
  }
  if ((made_ + 1) * kSlotBytes > bytes_) return {};
  auto* const base = reinterpret_cast<std::uint8_t*>(begin_ + made_ * kSlotBytes);
  const auto open = [&](std::size_t offset, std::size_t bytes) {
    return mprotect(base + offset, bytes, PROT_READ | PROT_WRITE) == 0;
  };
  const bool opened = open(kSharedBegin, kSharedWindowBytes) &&
                      open(kParameterBegin, kParameterWindowBytes) &&
                      open(kLocalBegin, kLocalWindowBytes);
  if (!opened) return {};
  return {.shared_end = base + kSharedBegin + kSharedWindowBytes,
          .shared_windows = 1,
          .parameters = base + kParameterBegin,
          .local = base + kLocalBegin,
          .index = made_++};
}

// Windows stay open for the slot's later users.
bool Arena::OpenWindows(ArenaSlot& slot, std::uint32_t windows) {
  for (; slot.shared_windows < windows; ++slot.shared_windows) {
    std::uint8_t* const begin =
        slot.shared_end - kSharedWindowBytes + slot.shared_windows * kClusterStride;
    if (mprotect(begin, kSharedWindowBytes, PROT_READ | PROT_WRITE) != 0) return false;
  }
  return true;
}

void Arena::Release(const ArenaSlot& slot) {
  const std::lock_guard lock(mutex_);
  free_.push_back(slot);
}

}  // namespace torpor::emulator
