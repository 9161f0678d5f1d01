#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/units.h"

// The layout of a session's shared window: a completion page that executors write and the client
// reads, and behind it the payload ring. It belongs to the session and moves with it from
// executor to executor; only the executor that holds the session's lease writes it.
namespace torpor::wire {

inline constexpr Bytes kCompletionPageBytes = 64 * kKiB;
inline constexpr std::size_t kCompletionSlots = 8000;

struct CompletionPage {
  // cudaError_t of the session's sticky error, 0 while there is none.
  std::atomic<std::uint32_t> sticky_error;
  std::uint32_t reserved[15];
  // Slots are allotted by the client. A command that carries (slot, value) makes the executor
  // write `value` here in stream order (cuStreamWriteValue64) once all earlier work of that
  // stream is complete. Values of one slot only grow.
  std::atomic<std::uint64_t> slots[kCompletionSlots];
};
static_assert(sizeof(CompletionPage) <= kCompletionPageBytes);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

// Where a command's bulk bytes are.
enum class Payload : std::uint32_t {
  kInline = 0,  // in the command itself
  kWindow = 1,  // at an offset in the window's ring (offset from the window's begin)
  kArena = 2,   // in the host arena (offset from its begin): pinned memory of the program
};

}  // namespace torpor::wire
