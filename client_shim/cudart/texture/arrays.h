#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "client_shim/cudart/texture/channel_format.h"

// cudaMallocArray and its like. The handles that the program holds are minted here. An array's
// texels live in memory of the GPU's driver; a block of device memory of the session, as large, is
// where they are kept while the session is elsewhere.
namespace torpor::shim {

// An array, or one level of a mipmapped one.
struct Array {
  int device = 0;
  std::uint64_t wire = 0;  // as commands name it; that of the whole for a level
  std::uint32_t level = 0;
  cudaChannelFormatDesc description{};
  ChannelFormat format;
  cudaExtent extent{};  // as the program gave it: 0 for dimensions that it lacks
  unsigned flags = 0;
  bool is_level = false;  // of a mipmapped array, whose block it shares
  std::uint64_t block = 0;

  std::uint64_t row_bytes() const { return extent.width * format.texel_bytes(); }
  std::uint64_t rows() const { return extent.height > 0 ? extent.height : 1; }
  std::uint64_t slices() const { return extent.depth > 0 ? extent.depth : 1; }
  std::uint64_t bytes() const { return row_bytes() * rows() * slices(); }
};
using ArrayPtr = std::shared_ptr<const Array>;

struct MipmappedArray {
  int device = 0;
  std::uint64_t wire = 0;
  std::uint64_t block = 0;
  std::vector<std::uint64_t> levels;  // the handles of the levels' arrays
};
using MipmappedArrayPtr = std::shared_ptr<const MipmappedArray>;

// cudaErrorInvalidResourceHandle if it is none.
cudaError_t FindArray(cudaArray_const_t handle, ArrayPtr& array);
cudaError_t FindMipmappedArray(cudaMipmappedArray_const_t handle, MipmappedArrayPtr& array);

// Those of the device in use, for cudaDeviceReset, which frees the blocks with all other memory.
cudaError_t DestroyAllArrays();

}  // namespace torpor::shim
