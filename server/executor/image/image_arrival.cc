#include "server/executor/image/image_arrival.h"

#include <algorithm>
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
                                 const std::vector<memory::SwapGroup>& groups) {
  if (stream() == nullptr) {
    TORPOR_ASSIGN_OR_RETURN(const CUstream made, device_.CreateStream());
    stream_.store(made, std::memory_order_release);
  }
  for (const CUevent event : events_) event_pool_.Return(event);
  events_.clear();
  passed_.clear();
  needed_ = 0;
  leads_anywhere_ = false;
  pieces_.clear();
  prepared_.clear();
  for (std::size_t i = 0; i < groups.size(); ++i) {
    for (const memory::Extent& piece : groups[i]) pieces_.push_back({piece, i + 1});
  }
  const auto begin_of = [](const auto& item) { return item.extent.begin; };
  std::ranges::sort(pieces_, {}, begin_of);
  allocations_.clear();
  for (const memory::SwapAllocation& allocation : allocations) {
    allocations_.push_back(
        {allocation.extent, StepOf(allocation.extent), allocation.holds_addresses});
  }
  std::ranges::sort(allocations_, {}, begin_of);
  return absl::OkStatus();
}

absl::Status ImageArrival::EndStep() {
  TORPOR_ASSIGN_OR_RETURN(const CUevent event, event_pool_.Take());
  events_.push_back(event);
  return device_.Status(device_.driver().EventRecord(event, stream()), "cuEventRecord");
}

absl::Status ImageArrival::Finish(std::function<void()> on_complete) {
  TORPOR_RETURN_IF_ERROR(EndStep());
  on_complete_ = std::move(on_complete);
  pending_.store(true, std::memory_order_relaxed);
  const CUresult asked = device_.driver().LaunchHostFunc(stream(), OnArrived, this);
  if (asked != CUDA_SUCCESS) pending_.store(false, std::memory_order_relaxed);
  return device_.Status(asked, "cuLaunchHostFunc");
}

void ImageArrival::OnArrived(void* arrival) {
  auto* const self = static_cast<ImageArrival*>(arrival);
  self->pending_.store(false, std::memory_order_relaxed);
  if (self->on_complete_) self->on_complete_();
}

absl::Status ImageArrival::Wait() const {
  if (stream() == nullptr) return absl::OkStatus();
  return device_.Status(device_.driver().StreamSynchronize(stream()),
                        "copying an image to the GPU");
}

absl::Status ImageArrival::AwaitPreparation(memory::Extent extent, CUstream stream) const {
  if (!is_pending()) return absl::OkStatus();
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
  return device_.driver().StreamWaitEvent(stream, events_[step - 1], 0);
}

}  // namespace torpor::executor
