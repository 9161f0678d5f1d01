#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>

#include "absl/status/status.h"
#include "base/units.h"
#include "memory/extent_set.h"
#include "proto/cuda_api/cudart_commands.h"
#include "server/executor/gpu/device.h"
#include "server/executor/gpu/event_pool.h"
#include "server/executor/image/device_image.h"

namespace torpor::executor {

// Writes uploads through to the session's host image (docs/decisions/0004). The first upload to a
// range in an era of the image (DeviceImage::era) is saved: by the processor, which copies the
// bytes that the client has sent while the GPU copies the same bytes, if these are final and no
// earlier save can come later; else by the GPU, in stream order. Later uploads to the range are the
// next write-back's, like what kernels write. Not thread-safe; call with the device current.
class UploadSaves {
 public:
  // Whoever copies an upload to the image.
  enum class Saver { kWriteBack, kProcessor, kGpu };

  // Both must outlive this. `is_stateless`: every upload is saved, since the session's changes may
  // be forgotten instead of written back.
  UploadSaves(const Device& device, DeviceImage& image, bool is_stateless)
      : device_(device), image_(image), is_stateless_(is_stateless), events_(device) {}
  ~UploadSaves();
  UploadSaves(const UploadSaves&) = delete;
  UploadSaves& operator=(const UploadSaves&) = delete;

  // The longest upload out of pinned memory that the processor copies: the session's next commands
  // wait as long.
  static constexpr Bytes kLongestPinned = 8 * kMiB;
  // So many ranges with saved uploads are remembered; with more, all are forgotten, and their next
  // upload is saved again.
  static constexpr std::size_t kMostRanges = 4096;

  // Says who is to save an upload of `bytes` from `payload` to the client's `address`. Call before
  // the GPU's copy is enqueued on `stream`, which a StreamSet has made ready for that copy. An
  // upload beside the image (a module's variable, pinned memory) is the write-back's.
  Saver SaverOf(std::uint64_t address, Bytes bytes, wire::Payload payload, CUstream stream);
  // Saves the upload by `saver`, after the GPU's copy has been enqueued.
  absl::Status Save(Saver saver, std::uint64_t address, std::span<const std::uint8_t> bytes,
                    CUstream stream);

 private:
  // Whether the range has a saved upload in the present era.
  bool HasSaved(memory::Extent range);
  void NoteSaved(memory::Extent range);
  bool MayCopyNow(wire::Payload payload, Bytes bytes, CUstream stream);
  bool HasPending();
  absl::Status NotePending(CUstream stream);

  const Device& device_;
  DeviceImage& image_;
  const bool is_stateless_;
  EventPool events_;
  std::deque<CUevent> pending_;  // behind each enqueued save that may not be done; oldest first
  memory::ExtentSet saved_;      // of era_, as the client's addresses
  std::uint64_t era_ = 0;
};

}  // namespace torpor::executor
