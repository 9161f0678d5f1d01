#pragma once

#include <atomic>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/units.h"
#include "server/executor/gpu/idle_task.h"
#include "server/executor/image/image_backing.h"
#include "server/executor/session/session_registry.h"

namespace torpor::executor {

// Most bytes that one step of consolidation copies: an operation that arrives meanwhile waits for
// as long. Equals a partition of the arena; 0.1 ms on a GPU that copies 1 TB/s.
inline constexpr Bytes kMaxMoved = 64 * kMiB;

// Joins free GPU memory by moving blocks of sessions without work.
class Consolidation final : public IdleTask {
 public:
  // The arguments must outlive the task.
  Consolidation(SessionRegistry& registry, ImageMemory& gpu_memory)
      : registry_(registry), gpu_memory_(gpu_memory) {}

  const char* name() const override { return "consolidating GPU memory"; }
  Duration quiet_time() const override;
  absl::StatusOr<bool> Step(CUstream stream, const std::atomic<bool>& is_wanted) override;

 private:
  SessionRegistry& registry_;
  ImageMemory& gpu_memory_;
};

}  // namespace torpor::executor
