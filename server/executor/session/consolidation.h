#pragma once

#include <atomic>

#include "absl/status/statusor.h"
#include "base/units.h"
#include "server/executor/image/image_backing.h"
#include "server/executor/session/session_registry.h"

namespace torpor::executor {

// Copied at most by one step of consolidation: who comes meanwhile waits for as much. A partition
// of the arena, and 0.1 ms on a GPU that copies 1 TB/s.
inline constexpr Bytes kMaxMoved = 64 * kMiB;

// A step of consolidation: moves blocks of sessions without work on the GPU so that its free memory
// comes together, until `is_wanted`, but for the one block that is being copied then. No operation
// runs meanwhile. Gives how much was moved; 0 if there is nothing to gain, or nothing of it can be
// had now.
absl::StatusOr<Bytes> Consolidate(SessionRegistry& registry, ImageMemory& gpu_memory,
                                  const std::atomic<bool>& is_wanted, CUstream stream);

}  // namespace torpor::executor
