#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "absl/status/statusor.h"
#include "proto/wire/session_window.h"
#include "server/executor/gpu/device.h"
#include "server/executor/gpu/pinned_memory.h"
#include "server/executor/gpu/shared_mapping.h"

namespace torpor::executor {

// A session's shared window as the executor writes it: the completion page, in stream order, and
// the payload ring.
class SessionWindow {
 public:
  // Registers the completion page with the driver. The ring, 256 times as much, is registered when
  // first used: most sessions use one GPU of the node.
  static absl::StatusOr<std::unique_ptr<SessionWindow>> Open(const Device& device,
                                                             SharedMapping mapping);

  // Has `value` written to the slot after all earlier work of `stream`; at once if `stream` is
  // null. A `value` of 0 writes nothing. CUDA_ERROR_INVALID_VALUE: there is no such slot.
  CUresult Mark(CUstream stream, std::uint32_t slot, std::uint64_t value);

  // Notes whether the upload with this slot is in the host image for good. Ignores unknown slots.
  void NoteUpload(std::uint32_t slot, bool is_saved);
  bool IsSavedUpload(std::uint32_t slot) const;

  // Later work of `stream` waits until the slot has come to `value`. CUDA_ERROR_NOT_SUPPORTED where
  // the device cannot wait for values in stream order.
  CUresult Await(CUstream stream, std::uint32_t slot, std::uint64_t value) const;

  // Returns the slot; null if there is no such slot.
  std::atomic<std::uint64_t>* Slot(std::uint32_t slot) const;

  // Ends all waits for values, on every device: the writers are gone.
  void ReachAll();

  // Shows the error on the completion page, which the client reads without a call.
  void SetStickyError(std::uint32_t cuda_error);

  // Returns the bytes [offset, offset + bytes) of the window; null unless all lie in the payload
  // ring, which is registered from then on. Takes any numbers.
  std::uint8_t* Payload(std::uint64_t offset, Bytes bytes) const;

 private:
  SessionWindow(const Device& device, SharedMapping mapping);
  wire::CompletionPage& page() const {
    return *reinterpret_cast<wire::CompletionPage*>(mapping_.data());
  }

  CUdeviceptr AddressOf(std::uint32_t slot) const;
  void PinRing() const;

  const Device& device_;
  const SharedMapping mapping_;
  mutable PinnedMemory pinned_;
  mutable std::once_flag ring_is_pinned_;
  CUdeviceptr device_address_ = 0;  // 0: the device cannot write values in stream order
};

}  // namespace torpor::executor
