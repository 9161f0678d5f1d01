#pragma once

#include <cuda.h>

#include <memory>
#include <optional>
#include <vector>

#include "emulator/driver/base/driver_result.h"
#include "emulator/driver/base/handle_table.h"
#include "emulator/driver/device/device.h"
#include "emulator/exec/texture/texture.h"

namespace torpor::emulator {

// Returns nullopt for formats that are not supported (multi-planar, compressed, ...).
std::optional<TexelFormat> ToTexelFormat(CUarray_format format, unsigned channels);

// Zeroed memory of one or more levels, which counts against its device. Lies outside the window of
// device addresses: kernels reach it through texture and surface objects only.
class ArrayMemory {
 public:
  // Returns null if the device or the machine lacks the memory.
  static std::shared_ptr<ArrayMemory> Create(Bytes size, DriverDevice& device);
  ArrayMemory(std::uint8_t* data, Bytes size, DriverDevice& device)
      : data_(data), size_(size), device_(device) {}
  ~ArrayMemory();
  ArrayMemory(const ArrayMemory&) = delete;
  ArrayMemory& operator=(const ArrayMemory&) = delete;

  std::uint8_t* data() const { return data_; }
  DriverDevice& device() const { return device_; }

 private:
  std::uint8_t* const data_;
  const Bytes size_;
  DriverDevice& device_;
};

// The object behind a CUarray: a separate array, or a level of a mipmapped one.
struct Array {
  CUDA_ARRAY3D_DESCRIPTOR description;  // extents of this level
  TexelFormat format;
  TextureLevel level;
  std::shared_ptr<ArrayMemory> memory;
  bool is_level = false;  // destroyed with its mipmapped array
};

struct MipmappedArray {
  CUDA_ARRAY3D_DESCRIPTOR description;
  std::vector<CUarray> levels;  // from the largest
};

using ArrayTable = HandleTable<Array, CUarray>;
using MipmappedArrayTable = HandleTable<MipmappedArray, CUmipmappedArray>;

// Makes the levels of an array, with their memory; `levels` is at least 1. Fails with
// CUDA_ERROR_INVALID_VALUE for contradictory descriptions and extents beyond the device's limits,
// with CUDA_ERROR_NOT_SUPPORTED for sparse arrays and unknown formats.
DriverResult<std::vector<std::shared_ptr<Array>>> MakeArrays(
    const CUDA_ARRAY3D_DESCRIPTOR& description, unsigned levels, DriverDevice& device);

}  // namespace torpor::emulator
