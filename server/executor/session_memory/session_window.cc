#include "server/executor/session_memory/session_window.h"

#include <spdlog/spdlog.h>

#include <cstddef>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace torpor::executor {
namespace {

// A mark written by a host function, for a device without stream-ordered writes.
struct HostMark {
  std::atomic<std::uint64_t>* slot;
  std::uint64_t value;
};

void CUDA_CB WriteHostMark(void* data) {
  const std::unique_ptr<HostMark> mark(static_cast<HostMark*>(data));
  mark->slot->store(mark->value, std::memory_order_release);
}

}  // namespace

absl::StatusOr<std::unique_ptr<SessionWindow>> SessionWindow::Open(const Device& device,
                                                                   SharedMapping mapping) {
  if (mapping.bytes() < wire::kCompletionPageBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a window of ", mapping.bytes(), " bytes has no room for a completion page"));
  }
  std::unique_ptr<SessionWindow> window(new SessionWindow(device, std::move(mapping)));
  TORPOR_RETURN_IF_ERROR(window->pinned_.Register({0, wire::kCompletionPageBytes}));
  if (device.attribute(CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS) != 0) {
    TORPOR_RETURN_IF_ERROR(device.Status(device.driver().MemHostGetDevicePointer(
                                             &window->device_address_, window->mapping_.data(), 0),
                                         "cuMemHostGetDevicePointer"));
  }
  return window;
}

SessionWindow::SessionWindow(const Device& device, SharedMapping mapping)
    : device_(device),
      mapping_(std::move(mapping)),
      pinned_(device, mapping_.data(), mapping_.bytes(), wire::kCompletionPageBytes) {}

CUresult SessionWindow::Mark(CUstream stream, std::uint32_t slot, std::uint64_t value) {
  if (value == 0) return CUDA_SUCCESS;
  if (slot >= wire::kCompletionSlots) return CUDA_ERROR_INVALID_VALUE;
  if (stream == nullptr) {
    page().slots[slot].store(value, std::memory_order_release);
    return CUDA_SUCCESS;
  }
  if (device_address_ == 0) {
    auto mark = std::make_unique<HostMark>(HostMark{&page().slots[slot], value});
    const CUresult result = device_.driver().LaunchHostFunc(stream, &WriteHostMark, mark.get());
    if (result == CUDA_SUCCESS) mark.release();  // NOLINT: WriteHostMark frees it
    return result;
  }
  return device_.driver().StreamWriteValue64(stream, AddressOf(slot), value,
                                             CU_STREAM_WRITE_VALUE_DEFAULT);
}

void SessionWindow::NoteUpload(std::uint32_t slot, bool is_saved) {
  if (slot == 0 || slot >= wire::kCompletionSlots) return;
  constexpr std::uint32_t kBits = 64;
  std::atomic<std::uint64_t>& bits = page().saved_uploads[slot / kBits];
  const std::uint64_t bit = std::uint64_t{1} << slot % kBits;
  if (is_saved) {
    bits.fetch_or(bit, std::memory_order_release);
  } else {
    bits.fetch_and(~bit, std::memory_order_release);
  }
}

bool SessionWindow::IsSavedUpload(std::uint32_t slot) const {
  constexpr std::uint32_t kBits = 64;
  return (page().saved_uploads[slot / kBits].load() >> slot % kBits & 1) != 0;
}

CUresult SessionWindow::Await(CUstream stream, std::uint32_t slot, std::uint64_t value) const {
  if (slot >= wire::kCompletionSlots) return CUDA_ERROR_INVALID_VALUE;
  if (device_address_ == 0) return CUDA_ERROR_NOT_SUPPORTED;
  return device_.driver().StreamWaitValue64(stream, AddressOf(slot), value,
                                            CU_STREAM_WAIT_VALUE_GEQ);
}

std::atomic<std::uint64_t>* SessionWindow::Slot(std::uint32_t slot) const {
  return slot < wire::kCompletionSlots ? &page().slots[slot] : nullptr;
}

void SessionWindow::ReachAll() {
  // The driver compares the difference, as a signed number, with 0.
  constexpr auto kBeyondAll = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  for (std::atomic<std::uint64_t>& slot : page().slots) {
    slot.store(kBeyondAll, std::memory_order_release);
  }
}

CUdeviceptr SessionWindow::AddressOf(std::uint32_t slot) const {
  return device_address_ + offsetof(wire::CompletionPage, slots) + slot * sizeof(std::uint64_t);
}

void SessionWindow::SetStickyError(std::uint32_t cuda_error) {
  page().sticky_error.store(cuda_error, std::memory_order_release);
}

std::uint8_t* SessionWindow::Payload(std::uint64_t offset, Bytes bytes) const {
  if (offset < wire::kCompletionPageBytes || !mapping_.Holds(offset, bytes)) return nullptr;
  std::call_once(ring_is_pinned_, [this] { PinRing(); });
  return mapping_.data() + offset;
}

// In one piece, since a copy must not span two registrations.
void SessionWindow::PinRing() const {
  const absl::Status status = pinned_.Register({wire::kCompletionPageBytes, mapping_.bytes()});
  if (status.ok()) return;
  spdlog::warn("a session's copies are slower, since its window cannot be pinned: {}",
               status.ToString());
}

}  // namespace torpor::executor
