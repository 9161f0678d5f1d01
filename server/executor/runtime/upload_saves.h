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

// Writes uploads through to the session's host image (docs/decisions/0004). Uploads that are final
// in the image (ImageUploads::IsFinal) are saved by the processor, which copies the bytes
// that the client has sent while the GPU copies the same bytes. All others are the next
// write-back's, like what kernels write: a replay (docs/decisions/0038) must find what was there
// before. Not thread-safe; call with the device current.
class UploadSaves {
 public:
  // Whoever copies an upload to the image.
  enum class Saver { kWriteBack, kProcessor, kGpu };

  // Both must outlive this. `is_stateless`: every upload is saved, by the GPU in stream order if
  // the processor may not, since the session's changes may be forgotten instead of written back.
  UploadSaves(const Device& device, DeviceImage& image, bool is_stateless)
      : device_(device), image_(image), is_stateless_(is_stateless), events_(device) {}
  ~UploadSaves();
  UploadSaves(const UploadSaves&) = delete;
  UploadSaves& operator=(const UploadSaves&) = delete;

  // The longest upload out of pinned memory that the processor copies: the session's next commands
  // wait as long.
  static constexpr Bytes kLongestPinned = 8 * kMiB;

  // Says who is to save an upload of `bytes` from `payload` to the client's `address`. Call before
  // the GPU's copy is enqueued on `stream`, which a StreamSet has made ready for that copy. An
  // upload beside the image (a module's variable, pinned memory) is the write-back's.
  Saver SaverOf(std::uint64_t address, Bytes bytes, wire::Payload payload, CUstream stream);
  // Saves the upload by `saver`, after the GPU's copy has been enqueued.
  absl::Status Save(Saver saver, std::uint64_t address, std::span<const std::uint8_t> bytes,
                    CUstream stream);

 private:
  bool MayCopyNow(wire::Payload payload, Bytes bytes, CUstream stream);
  bool HasPending();
  absl::Status NotePending(CUstream stream);

  const Device& device_;
  DeviceImage& image_;
  const bool is_stateless_;
  EventPool events_;
  std::deque<CUevent> pending_;  // behind each enqueued save that may not be done; oldest first
};

}  // namespace torpor::executor
