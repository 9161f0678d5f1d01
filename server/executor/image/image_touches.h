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

// The use of an image by the session's commands: makes commands wait for memory that a swap-in
// still brings, and notes the order in which allocations are first used. With neither under way, a
// check costs two loads. Offsets are bytes from the begin of the session's range.
class ImageTouches {
 public:
  ImageTouches(ImageArrival& arrival, SwapWait wait) : arrival_(arrival), wait_(wait) {}

  // For the thread that executes the session's commands: is_watching tells whether to announce the
  // memory that a command uses, before the command is enqueued, by the calls below.
  bool is_watching() const { return arrival_.is_pending() || recording() != 0; }
  // Returns the number of the recording under way, another for each recording; 0: none. Memory that
  // has been announced in a recording need not be announced again.
  std::uint64_t recording() const { return recording_.load(std::memory_order_relaxed); }
  // Uses exactly these bytes; `read`: the command reads some.
  void Use(memory::Extent bytes, bool read) ABSL_LOCKS_EXCLUDED(mutex_);
  // Uses the memory within a kernel's reach by a pointer to `offset`.
  void UsePointee(std::uint64_t offset) ABSL_LOCKS_EXCLUDED(mutex_);
  // May use any memory of the image.
  void UseAll() {
    if (arrival_.is_pending()) arrival_.NeedAll();
  }
  // Uploads these bytes.
  void Upload(memory::Extent bytes) ABSL_LOCKS_EXCLUDED(mutex_);

  // For the thread that swaps: the image's allocations.
  void Reset(std::span<const memory::Extent> allocations) ABSL_LOCKS_EXCLUDED(mutex_);
  void Add(memory::Extent allocation) ABSL_LOCKS_EXCLUDED(mutex_);
  void Remove(memory::Extent extent) ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<memory::Extent> allocations() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Counts all allocations as unused from now on; with `record`, notes first uses even after the
  // swap-in.
  void Begin(bool record) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the recording; returns the allocations in the order of first use.
  std::vector<Bytes> End() ABSL_LOCKS_EXCLUDED(mutex_);
  // As TouchLog's.
  std::vector<memory::Extent> TakeUploaded(Bytes max_bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  bool has_uploaded() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  ImageArrival& arrival_;
  const SwapWait wait_;
  std::atomic<std::uint64_t> recording_{0};
  mutable Mutex mutex_;
  std::uint64_t recordings_ ABSL_GUARDED_BY(mutex_) = 0;
  memory::TouchLog log_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace torpor::executor
