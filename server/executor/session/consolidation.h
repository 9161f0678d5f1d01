#pragma once

#include <atomic>

#include "absl/status/statusor.h"
#include "base/units.h"
#include "server/executor/image/image_backing.h"
#include "server/executor/session/session_registry.h"

namespace torpor::executor {

// Most bytes that one step of consolidation copies: an operation that arrives meanwhile waits for
// as long. Equals a partition of the arena; 0.1 ms on a GPU that copies 1 TB/s.
inline constexpr Bytes kMaxMoved = 64 * kMiB;

// Runs one step of consolidation: joins free GPU memory by moving blocks of sessions without work,
// until `is_wanted` is set (the block in copy is still finished). Requires that no operation runs
// meanwhile. Returns the moved bytes; 0 if nothing can be gained at the moment.
absl::StatusOr<Bytes> Consolidate(SessionRegistry& registry, ImageMemory& gpu_memory,
                                  const std::atomic<bool>& is_wanted, CUstream stream);

}  // namespace torpor::executor
