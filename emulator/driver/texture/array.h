#pragma once

#include <cuda.h>

#include <memory>
#include <optional>
#include <vector>

#include "emulator/driver/base/driver_result.h"
#include "emulator/driver/base/handle_table.h"
#include "emulator/driver/device/device.h"
#include "emulator/exec/image/image.h"

namespace torpor::emulator {

// The format of a texel; nothing for formats that are not supported (multi-planar, compressed,
// ...).
std::optional<TexelFormat> ToTexelFormat(CUarray_format format, unsigned channels);

// Memory of one or more image levels. Zeroed; counts against its device until it is gone. It lies
// outside the window of device addresses: kernels reach it by texture and surface objects only.
class ArrayMemory {
 public:
  // Null if the device or the machine has not that much.
  static std::shared_ptr<ArrayMemory> Create(Bytes size, Device& device);
  ArrayMemory(std::uint8_t* data, Bytes size, Device& device)
      : data_(data), size_(size), device_(device) {}
  ~ArrayMemory();
  ArrayMemory(const ArrayMemory&) = delete;
  ArrayMemory& operator=(const ArrayMemory&) = delete;

  std::uint8_t* data() const { return data_; }
  Device& device() const { return device_; }

 private:
  std::uint8_t* const data_;
  const Bytes size_;
  Device& device_;
};

// What a CUarray stands for: an array of its own, or a level of a mipmapped one.
struct Array {
  CUDA_ARRAY3D_DESCRIPTOR description;  // extents of this level
  TexelFormat format;
  ImageLevel level;
  std::shared_ptr<ArrayMemory> memory;
  bool is_level = false;  // destroyed with its mipmapped array
};

struct MipmappedArray {
  CUDA_ARRAY3D_DESCRIPTOR description;
  std::vector<CUarray> levels;  // from the largest
};

using ArrayTable = HandleTable<Array, CUarray>;
using MipmappedArrayTable = HandleTable<MipmappedArray, CUmipmappedArray>;

// The levels of an array of this description, memory and all; `levels` at least 1. InvalidValue for
// descriptions that contradict themselves or exceed the limits of the device's attributes,
// NotSupported for sparse arrays and unknown formats.
DriverResult<std::vector<std::shared_ptr<Array>>> MakeArrays(
    const CUDA_ARRAY3D_DESCRIPTOR& description, unsigned levels, Device& device);

}  // namespace torpor::emulator
