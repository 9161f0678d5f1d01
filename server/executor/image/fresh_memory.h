#pragma once

#include <atomic>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "memory/extent_set.h"

namespace torpor::executor {

// The memory of an image that no command has used since the host image was last as of a command
// (memory::Checkpoint), final uploads apart. A replay from there may find what is uploaded there
// later, since nothing reads or writes it before. Thread-safe.
class FreshMemory {
 public:
  // The host image has all changes: all memory is fresh.
  void Reset();
  // Adds memory just allocated.
  void Add(memory::Extent extent);
  // Whether any memory is fresh.
  bool has_any() const { return has_any_.load(std::memory_order_relaxed); }
  // A command is about to run that may use any memory.
  void UseAll();
  // An upload there will be repeated by a replay.
  void Use(memory::Extent extent);
  bool Contains(memory::Extent extent) const;

 private:
  std::atomic<bool> has_any_{false};
  mutable Mutex mutex_;
  bool is_all_ ABSL_GUARDED_BY(mutex_) = false;
  memory::ExtentSet extents_ ABSL_GUARDED_BY(mutex_);  // unless is_all_
  memory::ExtentSet used_ ABSL_GUARDED_BY(mutex_);     // by uploads, since all was fresh
};

}  // namespace torpor::executor
