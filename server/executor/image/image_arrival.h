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
#include "server/executor/gpu/event_pool.h"
#include "server/executor/image/swap_options.h"

namespace torpor::executor {

// A swap-in of one session with copies under way, group after group on a separate stream with an
// event after each group; makes the session's work wait for the groups in use. Groups arrive in
// order, so a stream that waits for a group has waited for all earlier groups.
//
// Begin, EndStep and Finish come from the thread that swaps, while no command of the session is
// executed; Need... and Pass from the thread that executes commands. Offsets are bytes from the
// begin of the session's range.
class ImageArrival {
 public:
  explicit ImageArrival(const Device& device) : device_(device), event_pool_(device) {}
  // Waits for the copies under way.
  ~ImageArrival();
  ImageArrival(const ImageArrival&) = delete;
  ImageArrival& operator=(const ImageArrival&) = delete;

  // Begins a swap-in; the copies of the previous swap-in are done. `allocations` do not overlap and
  // consist of the pieces of `groups`.
  absl::Status Begin(const std::vector<memory::SwapAllocation>& allocations,
                     const std::vector<memory::SwapGroup>& groups);
  // Returns the stream for the copies, from Begin on.
  CUstream stream() const { return stream_.load(std::memory_order_acquire); }
  // Notes that the work enqueued since the last event clears the memory around live bytes in
  // `extent`, which is new.
  void NotePrepared(memory::Extent extent) { prepared_.push_back({extent, events_.size() + 1}); }
  // Records the next group's event behind the work enqueued so far.
  absl::Status EndStep();
  // Ends the enqueueing. A thread of the driver, which may not call the driver, calls `on_complete`
  // after the last copy, unless the context is lost before.
  absl::Status Finish(std::function<void()> on_complete);

  // Waits until all enqueued work is done. Any thread.
  absl::Status Wait() const;
  // Makes later work of `stream` wait until the new memory in `extent` is prepared.
  absl::Status AwaitPreparation(memory::Extent extent, CUstream stream) const;
  // Whether the copies may still be under way. Any thread.
  bool is_pending() const { return pending_.load(std::memory_order_relaxed); }

  // Announce, while is_pending(), the memory that the next work uses: exactly these bytes; the
  // memory within reach of a pointer to `offset`; everything. Reading (`read`) bytes with addresses
  // counts as using everything.
  void Need(memory::Extent bytes, bool read);
  void NeedPointee(std::uint64_t offset, SwapWait wait);
  void NeedAll() { needed_ = events_.size(); }
  // Notes that these bytes hold addresses from now on.
  void NoteAddresses(memory::Extent bytes);

  // Makes later work of `stream` wait for the memory announced since the last call.
  CUresult Pass(CUstream stream) { return needed_ == 0 ? CUDA_SUCCESS : PassNeeded(stream); }
  // Forgets a destroyed stream, whose handle another stream may get.
  void Forget(CUstream stream) { passed_.erase(stream); }

 private:
  // So many events must have come: group after group, then the end; 0 asks for nothing.
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
  EventPool event_pool_;
  std::vector<CUevent> events_;          // of this arrival
  std::vector<Piece> pieces_;            // ascending
  std::vector<Piece> prepared_;          // in order of arrival
  std::vector<Allocation> allocations_;  // ascending
  std::function<void()> on_complete_;
  std::atomic<bool> pending_{false};

  // Of the thread that executes commands.
  Step needed_ = 0;
  bool leads_anywhere_ = false;  // memory that is not among `allocations_` holds addresses
  absl::flat_hash_map<CUstream, Step> passed_;  // the latest step that each stream waits for
};

}  // namespace torpor::executor
