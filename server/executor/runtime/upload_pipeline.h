#pragma once

#include <cuda.h>

#include <cstdint>

#include "absl/status/status.h"
#include "base/units.h"
#include "proto/wire/descriptor_socket.h"
#include "server/executor/gpu/device.h"
#include "server/executor/image/device_image.h"

namespace torpor::executor {

// Uploads that are saved in the image while they go on: a long upload goes in pieces, and each
// piece is copied back to the image on a second stream while the next piece comes, since a link
// carries both directions at once. Not thread-safe; call with the device current.
class UploadPipeline {
 public:
  // Both must outlive this.
  UploadPipeline(const Device& device, DeviceImage& image) : device_(device), image_(image) {}
  ~UploadPipeline();
  UploadPipeline(const UploadPipeline&) = delete;
  UploadPipeline& operator=(const UploadPipeline&) = delete;

  // From here on pieces gain more than their calls cost.
  static constexpr Bytes kMinBytes = 1 * kMiB;

  // Copies `bytes` from `source` to the client's address `address`, which is the GPU's `target`,
  // and into the image. Later work of `stream` comes after both.
  absl::Status Upload(CUdeviceptr target, std::uint64_t address, const std::uint8_t* source,
                      Bytes bytes, CUstream stream);

 private:
  static constexpr Bytes kPieceBytes = 512 * kKiB;
  static_assert(kPieceBytes % wire::kImageBlockBytes == 0);

  absl::Status Open();
  absl::Status Join(CUevent event, CUstream from, CUstream waiter) const;

  const Device& device_;
  DeviceImage& image_;
  CUstream saving_ = nullptr;  // made at the first use, as the events
  CUevent copied_ = nullptr;
  CUevent saved_ = nullptr;
};

}  // namespace torpor::executor
