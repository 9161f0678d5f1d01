#include "server/executor/image/image_uploads.h"

#include <cstring>
#include <vector>

#include "absl/status/statusor.h"
#include "base/status_macros.h"

namespace torpor::executor {

bool ImageUploads::Note(std::uint64_t address, std::span<const std::uint8_t> bytes) {
  const memory::Extent extent = ExtentOf(address, bytes.size());
  parts_.touches.Upload(extent);
  // Otherwise DeviceImage::AddressHolders searches when the image leaves the GPU.
  if (!parts_.arrival.is_pending() && !parts_.addresses.is_translating()) return false;
  const bool holds_addresses = parts_.addresses.ArePointersIn(bytes, address);
  if (holds_addresses && parts_.arrival.is_pending()) parts_.arrival.NoteAddresses(extent);
  return holds_addresses;
}

void ImageUploads::NoteUnseen(std::uint64_t address, Bytes bytes) {
  const memory::Extent extent = ExtentOf(address, bytes);
  parts_.touches.Upload(extent);
  if (parts_.arrival.is_pending()) parts_.arrival.NoteAddresses(extent);
}

bool ImageUploads::IsFinal(std::uint64_t address, Bytes bytes) const {
  const memory::Extent extent = ExtentOf(address, bytes);
  return fresh_.Contains(extent) && !parts_.blocks.HasPending(extent);
}

// Pins nothing: the executor does that when idle, in larger pieces.
absl::Status ImageUploads::Save(std::uint64_t address, std::span<const std::uint8_t> bytes) {
  const memory::Extent extent = ExtentOf(address, bytes.size());
  TORPOR_RETURN_IF_ERROR(parts_.host.MakeWritable(extent));
  TORPOR_ASSIGN_OR_RETURN(const std::vector<HostImage::Part> homes, parts_.host.PartsOf(extent));
  parts_.blocks.OnUpload(extent);
  for (const HostImage::Part& home : homes) {
    std::memcpy(home.data, bytes.data() + (home.extent.begin - extent.begin), home.extent.bytes());
  }
  return absl::OkStatus();
}

absl::Status ImageUploads::SaveBehind(CUstream stream, std::uint64_t address, Bytes bytes) {
  const memory::Extent extent = ExtentOf(address, bytes);
  TORPOR_RETURN_IF_ERROR(parts_.host.MakeWritable(extent));
  parts_.blocks.OnUpload(extent);
  return parts_.copies.Out(extent, stream);
}

}  // namespace torpor::executor
