#pragma once

#include <cuda.h>

#include <cstdint>
#include <deque>
#include <span>

#include "absl/status/status.h"
#include "base/units.h"
#include "proto/cuda_api/cudart_commands.h"
#include "server/executor/gpu/device.h"
#include "server/executor/gpu/event_pool.h"
#include "server/executor/image/device_image.h"

namespace torpor::executor {

// Writes uploads through to the session's host image (docs/decisions/0004). The processor copies
// the bytes that the client has sent while the GPU copies the same bytes, if these are final and no
// earlier save can come later; else the GPU's bytes are saved, in stream order. Not thread-safe;
// call with the device current.
class UploadSaves {
 public:
  // Both must outlive this.
  UploadSaves(const Device& device, DeviceImage& image)
      : device_(device), image_(image), events_(device) {}
  ~UploadSaves();
  UploadSaves(const UploadSaves&) = delete;
  UploadSaves& operator=(const UploadSaves&) = delete;

  // The longest upload out of pinned memory that the processor copies: the session's next commands
  // wait as long.
  static constexpr Bytes kLongestPinned = 8 * kMiB;

  // Whether the processor may save an upload of `bytes` from `payload`. Call before the GPU's copy
  // is enqueued on `stream`, which a StreamSet has made ready for that copy.
  bool MayCopyNow(wire::Payload payload, Bytes bytes, CUstream stream);
  // Saves an upload to the client's `address`, inside the image, by the processor.
  absl::Status CopyNow(std::uint64_t address, std::span<const std::uint8_t> bytes) {
    return image_.SaveBytes(address, bytes);
  }
  // Enqueues the save behind the GPU's copy.
  absl::Status Enqueue(std::uint64_t address, Bytes bytes, CUstream stream);

 private:
  bool HasPending();
  absl::Status NotePending(CUstream stream);

  const Device& device_;
  DeviceImage& image_;
  EventPool events_;
  std::deque<CUevent> pending_;  // behind each enqueued save that may not be done; oldest first
};

}  // namespace torpor::executor
