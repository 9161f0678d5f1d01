#include "server/executor/image/image_copies.h"

#include <cstdint>

#include "base/status_macros.h"

namespace torpor::executor {

absl::Status ImageCopies::Clear(memory::Extent extent, CUstream stream) const {
  if (extent.bytes() == 0) return absl::OkStatus();
  for (const BackedPart& part : backing_.PartsOf(extent)) {
    TORPOR_RETURN_IF_ERROR(
        device_.Status(device_.driver().MemsetD8Async(part.address, 0, part.extent.bytes(), stream),
                       "cuMemsetD8"));
  }
  return absl::OkStatus();
}

absl::Status ImageCopies::ClearOutside(const std::vector<memory::Extent>& extents,
                                       const memory::ExtentSet& keep, CUstream stream) const {
  for (const memory::Extent& extent : extents) {
    for (const memory::Extent& gap : keep.Gaps(extent)) {
      TORPOR_RETURN_IF_ERROR(Clear(gap, stream));
    }
  }
  return absl::OkStatus();
}

absl::Status ImageCopies::In(memory::Extent extent, CUstream stream) const {
  TORPOR_ASSIGN_OR_RETURN(const std::vector<HostImage::Part> homes, host_.PinnedPartsOf(extent));
  for (const HostImage::Part& home : homes) {
    for (const BackedPart& part : backing_.PartsOf(home.extent)) {
      const std::uint8_t* const from = home.data + (part.extent.begin - home.extent.begin);
      TORPOR_RETURN_IF_ERROR(device_.Status(
          device_.driver().MemcpyHtoDAsync(part.address, from, part.extent.bytes(), stream),
          "copying the image to the GPU"));
    }
  }
  return absl::OkStatus();
}

absl::Status ImageCopies::Out(memory::Extent extent, CUstream stream) const {
  TORPOR_ASSIGN_OR_RETURN(const std::vector<HostImage::Part> homes, host_.PinnedPartsOf(extent));
  for (const HostImage::Part& home : homes) {
    for (const BackedPart& part : backing_.PartsOf(home.extent)) {
      std::uint8_t* const to = home.data + (part.extent.begin - home.extent.begin);
      TORPOR_RETURN_IF_ERROR(device_.Status(
          device_.driver().MemcpyDtoHAsync(to, part.address, part.extent.bytes(), stream),
          "copying the image from the GPU"));
    }
  }
  return absl::OkStatus();
}

absl::Status ImageCopies::From(const std::vector<BackedPart>& source, CUstream stream) const {
  for (const BackedPart& from : source) {
    for (const BackedPart& part : backing_.PartsOf(from.extent)) {
      const Bytes before = part.extent.begin - from.extent.begin;
      TORPOR_RETURN_IF_ERROR(
          device_.Status(device_.driver().MemcpyDtoDAsync(part.address, from.address + before,
                                                          part.extent.bytes(), stream),
                         "copying the image from another GPU"));
    }
  }
  return absl::OkStatus();
}

}  // namespace torpor::executor
