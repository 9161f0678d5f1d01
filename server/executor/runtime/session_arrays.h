#pragma once

#include <cuda.h>

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/cuda_api/cudart_commands.h"
#include "server/executor/image/device_image.h"

namespace torpor::executor {

// The CUDA arrays of a session on this GPU. Arrays are the driver's own memory, outside of the
// pool and of the session's image: while the session is elsewhere, texels are in blocks of the
// image that the client allocated. Not thread-safe; call with the device current.
class SessionArrays {
 public:
  // A level of an array; all extents are at least 1.
  struct Level {
    CUarray array = nullptr;
    Bytes row_bytes = 0;
    Bytes rows = 1;
    Bytes slices = 1;
    Bytes offset = 0;  // in the block

    Bytes bytes() const { return row_bytes * rows * slices; }
  };

  // Returns the bytes of a channel of this CUarray_format; 0 for formats that are not supported.
  static Bytes ChannelBytes(std::uint32_t format);

  SessionArrays(const Device& device, DeviceImage& image) : device_(device), image_(image) {}
  ~SessionArrays();
  SessionArrays(const SessionArrays&) = delete;
  SessionArrays& operator=(const SessionArrays&) = delete;

  // Makes an array with the texels of the image's block (a new block is all zeroes), and waits
  // until the texels are there. InvalidArgument if the description is nonsense or the block is not
  // the session's memory.
  absl::Status Create(const wire::ArrayCreate& command, CUstream stream);
  // No work uses the array any more. NotFound if there is no such array.
  absl::Status Destroy(std::uint64_t id);

  // Returns null if there is no such array or level.
  const Level* Find(std::uint64_t id, std::uint32_t level) const;
  // Returns null if there is no such array, or if the array is not mipmapped.
  CUmipmappedArray FindMipmapped(std::uint64_t id) const;

  // Save enqueues copies of texels to blocks, before the image leaves the GPU. Restore enqueues
  // copies back for blocks that have come since `resident_before`, the resident extents then.
  absl::Status Save(CUstream stream) const;
  absl::Status Restore(const memory::ExtentSet& resident_before, CUstream stream) const;

 private:
  struct Array {
    std::vector<Level> levels;
    CUmipmappedArray mipmapped = nullptr;
    std::uint64_t block = 0;
    Bytes block_bytes = 0;
  };

  absl::Status MakeDriverArray(const wire::ArrayCreate& command, Array& array) const;
  absl::Status DestroyDriverArray(const Array& array) const;
  absl::Status CopyTexels(const Array& array, bool to_block, CUstream stream) const;

  const Device& device_;
  DeviceImage& image_;
  std::map<std::uint64_t, Array> arrays_;
};

}  // namespace torpor::executor
