#include "server/executor/runtime/shared_event.h"

namespace torpor::executor {
namespace {

// The low bits of a number count the records of a lease; the high bits are the lease.
constexpr int kLeaseShift = 32;

}  // namespace

std::optional<SharedEvent> SharedEvent::At(SessionWindow& window, std::uint32_t issued_slot,
                                           std::uint32_t done_slot, LeaseId lease) {
  const bool is_there = window.Slot(issued_slot) != nullptr && window.Slot(done_slot) != nullptr;
  if (!is_there || issued_slot == done_slot) return std::nullopt;
  return SharedEvent(window, issued_slot, done_slot, lease);
}

CUresult SharedEvent::Record(CUstream stream) const {
  std::uint64_t before = issued().load(std::memory_order_acquire);
  std::uint64_t number = 0;
  do {
    const bool is_first = before >> kLeaseShift != lease_.value;
    number = is_first ? lease_.value << kLeaseShift | 1 : before + 1;
  } while (!issued().compare_exchange_weak(before, number, std::memory_order_acq_rel));
  // Two streams might complete in the other order, and the later number would be overwritten.
  CUresult result = CUDA_SUCCESS;
  if (IsPending(before)) result = window_.Await(stream, done_slot_, before);
  if (result == CUDA_SUCCESS) result = window_.Mark(stream, done_slot_, number);
  // No session may wait for a failed record.
  if (result != CUDA_SUCCESS) window_.Mark(nullptr, done_slot_, number);
  return result;
}

CUresult SharedEvent::Await(CUstream stream) const {
  const std::uint64_t latest = issued().load(std::memory_order_acquire);
  return IsPending(latest) ? window_.Await(stream, done_slot_, latest) : CUDA_SUCCESS;
}

bool SharedEvent::IsComplete() const {
  return !IsPending(issued().load(std::memory_order_acquire));
}

bool SharedEvent::IsPending(std::uint64_t number) const {
  return number >> kLeaseShift == lease_.value && done().load(std::memory_order_acquire) < number;
}

}  // namespace torpor::executor
