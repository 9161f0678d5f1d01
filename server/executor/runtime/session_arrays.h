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

// The arrays of one session on this GPU. They are the driver's own memory, outside of the pool and
// of the session's image: while the session is elsewhere their texels are in blocks of the image
// that the client allocated. Of one thread at a time.
class SessionArrays {
 public:
  // One level of an array; its extents are at least 1.
  struct Level {
    CUarray array = nullptr;
    Bytes row_bytes = 0;
    Bytes rows = 1;
    Bytes slices = 1;
    Bytes offset = 0;  // in the block

    Bytes bytes() const { return row_bytes * rows * slices; }
  };

  // Bytes of a channel of this CUarray_format; 0 for formats that sessions cannot have.
  static Bytes ChannelBytes(std::uint32_t format);

  SessionArrays(const Device& device, DeviceImage& image) : device_(device), image_(image) {}
  ~SessionArrays();
  SessionArrays(const SessionArrays&) = delete;
  SessionArrays& operator=(const SessionArrays&) = delete;

  // An array with the texels of its block, which is zeroes if it is new; waits until they are
  // there. InvalidArgument if the description is nonsense or the block not memory of the session.
  absl::Status Create(const wire::ArrayCreate& command, CUstream stream);
  // Nothing uses it any more. NotFound if there is none.
  absl::Status Destroy(std::uint64_t id);

  // Null if there is none.
  const Level* Find(std::uint64_t id, std::uint32_t level) const;
  // Null if there is none, or it has no levels.
  CUmipmappedArray FindMipmapped(std::uint64_t id) const;

  // Enqueue copies: texels to blocks, before the image leaves the GPU; and back, for blocks that
  // have come since only `resident_before` was resident.
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
