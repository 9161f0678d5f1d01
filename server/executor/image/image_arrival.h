#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "memory/extent_set.h"
#include "memory/swap_history.h"
#include "memory/swap_planner.h"
#include "server/executor/gpu/device.h"
#include "server/executor/image/swap_options.h"

namespace torpor::executor {

// A swap-in of one session whose copies are still under way, group after group on a stream of its
// own with an event after each, and what the session's work must wait for meanwhile. Since groups
// arrive in order, a stream that waits for one has waited for those before it.
//
// Begin, EndStep and Finish come from the thread that swaps while none of the session's commands
// is executed; Need... and Pass from the thread that executes them. Offsets are bytes from the
// begin of the session's range.
class ImageArrival {
 public:
  explicit ImageArrival(const Device& device) : device_(device) {}
  // Waits for what is still copied.
  ~ImageArrival();
  ImageArrival(const ImageArrival&) = delete;
  ImageArrival& operator=(const ImageArrival&) = delete;

  // Another swap-in; the last one's copies are done. `allocations`, which do not overlap, come in
  // `groups`, whose pieces they are.
  absl::Status Begin(const std::vector<memory::SwapAllocation>& allocations,
                     const std::vector<memory::SwapGroup>& groups);
  // Where to enqueue the copies; from Begin on.
  CUstream stream() const { return stream_.load(std::memory_order_acquire); }
  // What was enqueued up to now has arrived when the next event has: first what prepares the
  // memory, then group after group.
  absl::Status EndStep();
  // All is enqueued. When it has arrived `on_complete` is called by a thread of the driver, which
  // may not call the driver; it is not called if the context is lost before.
  absl::Status Finish(std::function<void()> on_complete);

  // Waits until all that was enqueued is done. Any thread.
  absl::Status Wait() const;
  // Makes later work of `stream` wait until the memory is prepared.
  absl::Status AwaitPreparation(CUstream stream) const;
  // Whether the copies may still be under way. Any thread.
  bool is_pending() const { return pending_.load(std::memory_order_relaxed); }

  // What the next work to be enqueued uses, while is_pending(): exactly these bytes; what a pointer
  // to `offset` may lead to; everything. Of bytes that are `read` and hold addresses everything is
  // used.
  void Need(memory::Extent bytes, bool read);
  void NeedPointee(std::uint64_t offset, SwapWait wait);
  void NeedAll() { needed_ = events_.size(); }
  // These bytes hold addresses from now on.
  void NoteAddresses(memory::Extent bytes);

  // Makes later work of `stream` wait for what was needed since the last call.
  CUresult Pass(CUstream stream) { return needed_ == 0 ? CUDA_SUCCESS : PassNeeded(stream); }
  // The stream is no more; another may get its handle.
  void Forget(CUstream stream) { passed_.erase(stream); }

 private:
  // So many events must have come: 1 is the preparation, the groups follow; 0 asks for nothing.
  using Step = std::size_t;

  struct Piece {
    memory::Extent extent;
    Step step = 0;
  };
  struct Allocation {
    memory::Extent extent;
    Step last_step = 0;
    bool holds_addresses = false;
  };

  CUresult PassNeeded(CUstream stream);
  void Need(Step step) { needed_ = needed_ < step ? step : needed_; }
  Step StepOf(memory::Extent bytes) const;
  static void CUDA_CB OnArrived(void* arrival);

  const Device& device_;
  std::atomic<CUstream> stream_{nullptr};
  std::vector<CUevent> events_;          // of this arrival
  std::vector<CUevent> unused_;          // of earlier ones
  std::vector<Piece> pieces_;            // ascending
  std::vector<Allocation> allocations_;  // ascending
  std::function<void()> on_complete_;
  std::atomic<bool> pending_{false};

  // Of the thread that executes commands.
  Step needed_ = 0;
  bool leads_anywhere_ = false;  // memory that is not among `allocations_` holds addresses
  absl::flat_hash_map<CUstream, Step> passed_;  // what each stream waits for already
};

}  // namespace torpor::executor
