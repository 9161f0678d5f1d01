#pragma once

#include <cstddef>

#include "base/units.h"
#include "server/controller/model/executor_table.h"
#include "server/controller/model/session_table.h"

namespace torpor::server {

// Allocations of one kind, on the device or pinned, that a session may hold: bounds torpord's
// memory.
inline constexpr std::size_t kMaxBlocks = 1 << 20;

// The least default of pinned_limit: enough for a program's copies.
inline constexpr Bytes kLeastPinned = 256 * kMiB;

// How much GPU memory and pinned host memory the processes of an instance may allocate, and have
// allocated, together. On the controller's thread.
class MemoryLimits {
 public:
  // Both tables must outlive this object. `chunk_bytes` is the unit of executors' pools.
  MemoryLimits(const SessionTable& sessions, const ExecutorTable& executors, Bytes chunk_bytes)
      : sessions_(sessions), executors_(executors), chunk_bytes_(chunk_bytes) {}

  // Returns bytes per device: the configured limit, or else the largest pool.
  Bytes LimitOf(const FunctionInstance& instance) const;
  // Bytes allocated on one device, by all processes together.
  Bytes LiveBytes(const FunctionInstance& instance, int device_index) const;
  Bytes FreeBytes(const FunctionInstance& instance, int device_index) const;

  // Of pinned memory: the configured limit, or else LimitOf on all of the instance's GPUs, and at
  // least kLeastPinned.
  Bytes PinnedLimitOf(const FunctionInstance& instance) const;
  Bytes PinnedBytes(const FunctionInstance& instance) const;

 private:
  const SessionTable& sessions_;
  const ExecutorTable& executors_;
  const Bytes chunk_bytes_;
};

}  // namespace torpor::server
