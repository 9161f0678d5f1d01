#pragma once

#include <cuda.h>

#include <vector>

#include "absl/status/status.h"
#include "base/units.h"
#include "memory/extent_set.h"
#include "server/executor/gpu/device.h"
#include "server/executor/image/host_image.h"
#include "server/executor/image/image_backing.h"

namespace torpor::executor {

// Enqueues copies between a session's host image and the memory behind its addresses on this GPU.
// Extents are bytes from the begin of the session's range, backed on the GPU. For the thread that
// swaps, and the thread that executes the session's calls.
class ImageCopies {
 public:
  // All must outlive this object.
  ImageCopies(const Device& device, const ImageBacking& backing, HostImage& host)
      : device_(device), backing_(backing), host_(host) {}

  // Zeroes the extent on the GPU.
  absl::Status Clear(memory::Extent extent, CUstream stream) const;
  // Zeroes the extents except for `keep`: chunks may hold another function's bytes.
  absl::Status ClearOutside(const std::vector<memory::Extent>& extents,
                            const memory::ExtentSet& keep, CUstream stream) const;
  // Copies from and to the blocks' homes.
  absl::Status In(memory::Extent extent, CUstream stream) const;
  absl::Status Out(memory::Extent extent, CUstream stream) const;
  // Copies `source`, the GPU's addresses of parts of the image elsewhere.
  absl::Status From(const std::vector<BackedPart>& source, CUstream stream) const;

 private:
  const Device& device_;
  const ImageBacking& backing_;
  HostImage& host_;
};

}  // namespace torpor::executor
