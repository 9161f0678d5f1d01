#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/mutex.h"
#include "memory/extent_set.h"
#include "memory/swap_history.h"
#include "memory/swap_planner.h"
#include "server/executor/gpu/device.h"
#include "server/executor/gpu/event_pool.h"
#include "server/executor/image/swap_options.h"

namespace torpor::executor {

// A swap-in of one session with copies under way, group after group on a separate stream with an
// event after each group; makes the session's work wait for the groups in use. Groups arrive in
// order, so a stream that waits for a group has waited for all earlier groups. Enqueueing goes on
// while the session works: by the thread that swaps, or by the thread that executes commands where
// a command needs a group that is not enqueued yet.
//
// Begin and Abandon come from the thread that swaps, while no command of the session is executed;
// Need... and Pass from the thread that executes commands. Offsets are bytes from the begin of the
// session's range.
class ImageArrival {
 public:
  // What is enqueued on stream().
  struct Steps {
    std::function<absl::Status(const memory::SwapGroup&)> enqueue_group;
    // What goes behind all groups. Called while no command of the session is executed, except by
    // the thread that executes commands.
    std::function<absl::Status()> enqueue_last;
    // Called by a thread of the driver, which may not call the driver, after the last copy, unless
    // the context is lost before.
    std::function<void()> on_complete;
  };

  explicit ImageArrival(const Device& device) : device_(device), event_pool_(device) {}
  // Waits for the copies under way.
  ~ImageArrival();
  ImageArrival(const ImageArrival&) = delete;
  ImageArrival& operator=(const ImageArrival&) = delete;

  // Begins a swap-in, and enqueues nothing yet; the copies of the previous swap-in are done.
  // `allocations` do not overlap and consist of the pieces of `groups`.
  absl::Status Begin(const std::vector<memory::SwapAllocation>& allocations,
                     std::vector<memory::SwapGroup> groups, Steps steps);
  // Returns the stream for the copies, from Begin on.
  CUstream stream() const { return stream_.load(std::memory_order_acquire); }
  // For steps: notes that the work of this step clears the memory around live bytes in `extent`,
  // which is new.
  void NotePrepared(memory::Extent extent) { prepared_.push_back({extent, events_.size() + 1}); }

  // Enqueues the next group, if one is left; returns whether another is. After an error nothing
  // more is enqueued, and all later calls return the error.
  absl::StatusOr<bool> EnqueueGroup() ABSL_LOCKS_EXCLUDED(mutex_);
  // Enqueues all that is left. For a thread that may call Steps::enqueue_last.
  absl::Status EnqueueAll() ABSL_LOCKS_EXCLUDED(mutex_);
  // Enqueues no more, after an error.
  void Abandon() ABSL_LOCKS_EXCLUDED(mutex_);

  // Enqueues all that is left, and waits until all is done. As EnqueueAll.
  absl::Status Wait() ABSL_LOCKS_EXCLUDED(mutex_);
  // As Wait, but leaves enqueueing to others. Any thread.
  absl::Status WaitForOthers() ABSL_LOCKS_EXCLUDED(mutex_);
  // Makes later work of `stream` wait until the new memory in `extent` is prepared.
  absl::Status AwaitPreparation(memory::Extent extent, CUstream stream) ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether the copies may still be under way, or still to be enqueued. Any thread.
  bool is_pending() const { return pending_.load(std::memory_order_relaxed); }

  // Announce, while is_pending(), the memory that the next work uses: exactly these bytes; the
  // memory within reach of a pointer to `offset`; everything. Reading (`read`) bytes with addresses
  // counts as using everything.
  void Need(memory::Extent bytes, bool read);
  void NeedPointee(std::uint64_t offset, SwapWait wait);
  void NeedAll() { needed_ = steps_; }
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

  CUresult PassNeeded(CUstream stream) ABSL_LOCKS_EXCLUDED(mutex_);
  void Need(Step step) { needed_ = needed_ < step ? step : needed_; }
  Step StepOf(memory::Extent bytes) const;
  // As EnqueueUpTo, before others.
  absl::Status EnqueueWanted(Step steps) ABSL_LOCKS_EXCLUDED(mutex_);
  // Enqueues until `steps` events have been recorded.
  absl::Status EnqueueUpTo(Step steps) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status EnqueueStep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status RecordEvent() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status AskForCompletion();
  absl::Status Synchronize() const;
  static void CUDA_CB OnArrived(void* arrival);

  const Device& device_;
  std::atomic<CUstream> stream_{nullptr};
  EventPool event_pool_;
  std::vector<Piece> pieces_;            // ascending
  std::vector<Allocation> allocations_;  // ascending
  Step steps_ = 0;                       // groups, and the end
  std::atomic<bool> pending_{false};

  // Held while something is enqueued, by the steps of `enqueue_` too. Whoever enqueues one group
  // after the other lets a thread go first that wants a certain group: absl::Mutex would not.
  Mutex mutex_;
  std::atomic<int> wanting_{0};  // threads that want the mutex for a group
  std::vector<memory::SwapGroup> groups_ ABSL_GUARDED_BY(mutex_);
  Steps enqueue_;                  // under mutex_, but for on_complete
  std::vector<CUevent> events_;    // of the steps enqueued so far; under mutex_, or below recorded_
  std::atomic<Step> recorded_{0};  // so many of events_
  std::vector<Piece> prepared_;    // in order of arrival; under mutex_
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  absl::CondVar enqueued_;  // all, or not to be

  // Of the thread that executes commands.
  Step needed_ = 0;
  bool leads_anywhere_ = false;  // memory that is not among `allocations_` holds addresses
  absl::flat_hash_map<CUstream, Step> passed_;  // the latest step that each stream waits for
};

}  // namespace torpor::executor
