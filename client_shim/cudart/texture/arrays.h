#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "client_shim/cudart/texture/channel_format.h"

// CUDA arrays (cudaMallocArray and related calls). The client mints the handles. An array's texels
// live in memory of the GPU's driver; a block of the session's device memory, of the same size,
// keeps the texels while the session is away from the GPU. Thread-safe.
namespace torpor::shim {

// An array, or a level of a mipmapped array.
struct ClientArray {
  int device = 0;
  std::uint64_t wire = 0;  // the name in commands; a level has the whole array's
  std::uint32_t level = 0;
  cudaChannelFormatDesc description{};
  ChannelFormat format;
  cudaExtent extent{};  // as given by the program: 0 for missing dimensions
  unsigned flags = 0;
  bool is_level = false;  // of a mipmapped array; shares the whole array's block
  std::uint64_t block = 0;

  std::uint64_t row_bytes() const { return extent.width * format.texel_bytes(); }
  std::uint64_t rows() const { return extent.height > 0 ? extent.height : 1; }
  std::uint64_t slices() const { return extent.depth > 0 ? extent.depth : 1; }
  std::uint64_t bytes() const { return row_bytes() * rows() * slices(); }
};
using ClientArrayPtr = std::shared_ptr<const ClientArray>;

struct ClientMipmappedArray {
  int device = 0;
  std::uint64_t wire = 0;
  std::uint64_t block = 0;
  std::vector<std::uint64_t> levels;  // the handles of the levels' arrays
};
using ClientMipmappedArrayPtr = std::shared_ptr<const ClientMipmappedArray>;

// cudaErrorInvalidResourceHandle for a handle of no live array.
cudaError_t FindArray(cudaArray_const_t handle, ClientArrayPtr& array);
cudaError_t FindMipmappedArray(cudaMipmappedArray_const_t handle, ClientMipmappedArrayPtr& array);

// Destroys all arrays of the device in use (cudaDeviceReset). The caller frees the blocks with all
// other memory.
cudaError_t DestroyAllArrays();

}  // namespace torpor::shim
