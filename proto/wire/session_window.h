#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/units.h"

// The layout of a session's shared window: a completion page that executors write and the client
// reads, followed by the payload ring. The window belongs to the session and moves with the session
// from executor to executor; only the executor with the session's lease writes.
namespace torpor::wire {

inline constexpr Bytes kCompletionPageBytes = 64 * kKiB;
inline constexpr std::size_t kCompletionSlots = 8000;

struct CompletionPage {
  // cudaError_t of the session's sticky error; 0: no sticky error.
  std::atomic<std::uint32_t> sticky_error;
  std::uint32_t reserved[15];
  // Slots are allotted by the client. A command that carries (slot, value) makes the executor
  // write `value` here in stream order (cuStreamWriteValue64) once all earlier work of that
  // stream is complete. Values of one slot only grow.
  std::atomic<std::uint64_t> slots[kCompletionSlots];
  // A bit for each slot: whether the upload that wrote the slot last is in the host image for good,
  // so that no replay needs the bytes (docs/decisions/0038). Set or cleared before the slot.
  std::atomic<std::uint64_t> saved_uploads[kCompletionSlots / 64];
};
static_assert(sizeof(CompletionPage) <= kCompletionPageBytes);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(kCompletionSlots % 64 == 0);

// The place of a command's bulk bytes.
enum class Payload : std::uint32_t {
  kInline = 0,  // in the command itself
  kWindow = 1,  // at an offset in the window's ring (offset from the window's begin)
  kArena = 2,   // in the host arena (offset from the arena's begin): pinned memory
};

}  // namespace torpor::wire
