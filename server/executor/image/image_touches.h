#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "memory/extent_set.h"
#include "memory/touch_log.h"
#include "server/executor/image/image_arrival.h"
#include "server/executor/image/swap_options.h"

namespace torpor::executor {

// What a session's commands use of its image: makes them wait for what a swap-in still brings, and
// notes in which order allocations are used first. Where neither is going on, asking costs two
// loads. Offsets are bytes from the begin of the session's range.
class ImageTouches {
 public:
  ImageTouches(ImageArrival& arrival, SwapWait wait) : arrival_(arrival), wait_(wait) {}

  // The thread that executes the session's commands: whether it is to say what they use, and,
  // before a command is enqueued, what it uses.
  bool is_watching() const {
    return arrival_.is_pending() || is_recording_.load(std::memory_order_relaxed);
  }
  // Exactly these bytes, of which some are `read`.
  void Use(memory::Extent bytes, bool read) ABSL_LOCKS_EXCLUDED(mutex_);
  // What a kernel that has a pointer to `offset` may use.
  void UsePointee(std::uint64_t offset) ABSL_LOCKS_EXCLUDED(mutex_);
  // Whatever the image has, but there is no telling what.
  void UseAll() {
    if (arrival_.is_pending()) arrival_.NeedAll();
  }
  // These bytes are uploaded.
  void Upload(memory::Extent bytes) ABSL_LOCKS_EXCLUDED(mutex_);

  // The thread that swaps: which allocations there are.
  void Reset(std::span<const memory::Extent> allocations) ABSL_LOCKS_EXCLUDED(mutex_);
  void Add(memory::Extent allocation) ABSL_LOCKS_EXCLUDED(mutex_);
  void Remove(memory::Extent extent) ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<memory::Extent> allocations() const ABSL_LOCKS_EXCLUDED(mutex_);

  // From now on all counts as unused; with `record` first uses are noted even when nothing is
  // swapped in any more.
  void Begin(bool record) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends that; gives the allocations in the order of their first use.
  std::vector<Bytes> End() ABSL_LOCKS_EXCLUDED(mutex_);
  // As TouchLog's.
  std::vector<memory::Extent> TakeUploaded(Bytes max_bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  bool has_uploaded() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  ImageArrival& arrival_;
  const SwapWait wait_;
  std::atomic<bool> is_recording_{false};
  mutable Mutex mutex_;
  memory::TouchLog log_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace torpor::executor
