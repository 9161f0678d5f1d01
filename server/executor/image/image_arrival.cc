#include "server/executor/image/image_arrival.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/status_macros.h"

namespace torpor::executor {
namespace {

// Returns the first of `items` (ascending, disjoint) that ends beyond `offset`.
template <typename Items>
auto FirstBeyond(Items& items, Bytes offset) {
  return std::ranges::upper_bound(items, offset, {},
                                  [](const auto& item) { return item.extent.end; });
}

}  // namespace

ImageArrival::~ImageArrival() {
  Wait().IgnoreError();
  for (const CUevent event : events_) event_pool_.Return(event);
  device_.discarded().Add(stream());
}

absl::Status ImageArrival::Begin(const std::vector<memory::SwapAllocation>& allocations,
                                 std::vector<memory::SwapGroup> groups, Steps steps) {
  if (stream() == nullptr) {
    TORPOR_ASSIGN_OR_RETURN(const CUstream made, device_.CreateStream());
    stream_.store(made, std::memory_order_release);
  }
  MutexLock lock(&mutex_);
  for (const CUevent event : events_) event_pool_.Return(event);
  events_.clear();
  events_.reserve(groups.size() + 1);  // they stay where they are
  recorded_.store(0, std::memory_order_relaxed);
  passed_.clear();
  needed_ = 0;
  leads_anywhere_ = false;
  pieces_.clear();
  prepared_.clear();
  groups_ = std::move(groups);
  steps_ = groups_.size() + 1;
  enqueue_ = std::move(steps);
  status_ = absl::OkStatus();
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    for (const memory::Extent& piece : groups_[i]) pieces_.push_back({piece, i + 1});
  }
  const auto begin_of = [](const auto& item) { return item.extent.begin; };
  std::ranges::sort(pieces_, {}, begin_of);
  allocations_.clear();
  for (const memory::SwapAllocation& allocation : allocations) {
    allocations_.push_back(
        {allocation.extent, StepOf(allocation.extent), allocation.holds_addresses});
  }
  std::ranges::sort(allocations_, {}, begin_of);
  pending_.store(true, std::memory_order_relaxed);
  return absl::OkStatus();
}

absl::StatusOr<bool> ImageArrival::EnqueueGroup() {
  while (wanting_.load(std::memory_order_relaxed) > 0) std::this_thread::yield();
  MutexLock lock(&mutex_);
  const Step next = std::min(events_.size() + 1, groups_.size());
  TORPOR_RETURN_IF_ERROR(EnqueueUpTo(next));
  return next < groups_.size();
}

absl::Status ImageArrival::EnqueueAll() { return EnqueueWanted(steps_); }

absl::Status ImageArrival::EnqueueWanted(Step steps) {
  wanting_.fetch_add(1, std::memory_order_relaxed);
  MutexLock lock(&mutex_);
  wanting_.fetch_sub(1, std::memory_order_relaxed);
  return EnqueueUpTo(steps);
}

absl::Status ImageArrival::EnqueueUpTo(Step steps) {
  while (status_.ok() && events_.size() < steps) {
    status_ = EnqueueStep();
    if (!status_.ok() || events_.size() == steps_) enqueued_.SignalAll();
  }
  return status_;
}

absl::Status ImageArrival::EnqueueStep() {
  const Step step = events_.size();
  if (step < groups_.size()) {
    TORPOR_RETURN_IF_ERROR(enqueue_.enqueue_group(groups_[step]));
    return RecordEvent();
  }
  TORPOR_RETURN_IF_ERROR(enqueue_.enqueue_last());
  TORPOR_RETURN_IF_ERROR(RecordEvent());
  return AskForCompletion();
}

absl::Status ImageArrival::RecordEvent() {
  TORPOR_ASSIGN_OR_RETURN(const CUevent event, event_pool_.Take());
  events_.push_back(event);
  TORPOR_RETURN_IF_ERROR(
      device_.Status(device_.driver().EventRecord(event, stream()), "cuEventRecord"));
  recorded_.store(events_.size(), std::memory_order_release);
  return absl::OkStatus();
}

absl::Status ImageArrival::AskForCompletion() {
  return device_.Status(device_.driver().LaunchHostFunc(stream(), OnArrived, this),
                        "cuLaunchHostFunc");
}

void ImageArrival::Abandon() {
  MutexLock lock(&mutex_);
  steps_ = events_.size();
  groups_.clear();
  status_ = absl::OkStatus();
  pending_.store(false, std::memory_order_relaxed);
  enqueued_.SignalAll();
}

void ImageArrival::OnArrived(void* arrival) {
  auto* const self = static_cast<ImageArrival*>(arrival);
  self->pending_.store(false, std::memory_order_relaxed);
  if (self->enqueue_.on_complete) self->enqueue_.on_complete();
}

absl::Status ImageArrival::Wait() {
  absl::Status enqueued = EnqueueAll();
  enqueued.Update(Synchronize());
  return enqueued;
}

absl::Status ImageArrival::WaitForOthers() {
  {
    MutexLock lock(&mutex_);
    while (status_.ok() && events_.size() < steps_) mutex_.WaitFor(enqueued_, absl::Seconds(1));
    TORPOR_RETURN_IF_ERROR(status_);
  }
  return Synchronize();
}

absl::Status ImageArrival::Synchronize() const {
  if (stream() == nullptr) return absl::OkStatus();
  return device_.Status(device_.driver().StreamSynchronize(stream()),
                        "copying an image to the GPU");
}

absl::Status ImageArrival::AwaitPreparation(memory::Extent extent, CUstream stream) {
  if (!is_pending()) return absl::OkStatus();
  MutexLock lock(&mutex_);
  Step last = 0;
  for (const Piece& piece : prepared_) {
    const bool overlaps = piece.extent.begin < extent.end && extent.begin < piece.extent.end;
    if (overlaps) last = std::max(last, piece.step);
  }
  if (last == 0) return absl::OkStatus();
  return device_.Status(device_.driver().StreamWaitEvent(stream, events_[last - 1], 0),
                        "cuStreamWaitEvent");
}

ImageArrival::Step ImageArrival::StepOf(memory::Extent bytes) const {
  Step last = 0;
  for (auto piece = FirstBeyond(pieces_, bytes.begin);
       piece != pieces_.end() && piece->extent.begin < bytes.end; ++piece) {
    last = std::max(last, piece->step);
  }
  return last;
}

void ImageArrival::Need(memory::Extent bytes, bool read) {
  Need(StepOf(bytes));
  if (!read) return;
  if (leads_anywhere_) return NeedAll();
  for (auto at = FirstBeyond(allocations_, bytes.begin);
       at != allocations_.end() && at->extent.begin < bytes.end; ++at) {
    if (at->holds_addresses) NeedAll();
  }
}

void ImageArrival::NeedPointee(std::uint64_t offset, SwapWait wait) {
  if (leads_anywhere_) return NeedAll();
  const auto at = FirstBeyond(allocations_, offset);
  if (at == allocations_.end() || offset < at->extent.begin) return;
  if (at->holds_addresses) return NeedAll();
  Need(wait == SwapWait::kRange ? StepOf({offset, offset + 1}) : at->last_step);
}

void ImageArrival::NoteAddresses(memory::Extent bytes) {
  Bytes known = 0;
  for (auto at = FirstBeyond(allocations_, bytes.begin);
       at != allocations_.end() && at->extent.begin < bytes.end; ++at) {
    at->holds_addresses = true;
    known += std::min(at->extent.end, bytes.end) - std::max(at->extent.begin, bytes.begin);
  }
  // The rest was allocated since the swap-in began.
  if (known < bytes.bytes()) leads_anywhere_ = true;
}

CUresult ImageArrival::PassNeeded(CUstream stream) {
  const Step step = std::exchange(needed_, 0);
  if (!is_pending()) return CUDA_SUCCESS;
  Step& passed = passed_[stream];
  if (passed >= step) return CUDA_SUCCESS;
  passed = step;
  // The thread that swaps tells torpord of an error.
  if (recorded_.load(std::memory_order_acquire) < step && !EnqueueWanted(step).ok()) {
    return CUDA_ERROR_UNKNOWN;
  }
  return device_.driver().StreamWaitEvent(stream, events_[step - 1], 0);
}

}  // namespace torpor::executor
