#include "emulator/driver/texture/array.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "emulator/driver/device/device_limits.h"

namespace torpor::emulator {
namespace {

constexpr Bytes kRowAlignment = 64;
constexpr unsigned kArrayFlags = CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST |
                                 CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_TEXTURE_GATHER |
                                 CUDA_ARRAY3D_COLOR_ATTACHMENT;
constexpr unsigned kFaces = 6;

// Whether the extents are legal for a cube, or for layers of cubes.
bool FitsCube(const CUDA_ARRAY3D_DESCRIPTOR& d) {
  const bool is_layered = (d.Flags & CUDA_ARRAY3D_LAYERED) != 0;
  return d.Width == d.Height && d.Width <= kMaxLayerEdge &&
         (is_layered ? d.Depth % kFaces == 0 && d.Depth > 0 && d.Depth <= kMaxCubeLayers
                     : d.Depth == kFaces);
}

// Whether the extents are legal for layers.
bool FitsLayers(const CUDA_ARRAY3D_DESCRIPTOR& d) {
  return d.Depth > 0 && d.Depth <= kMaxLayers && d.Width <= kMaxLayerEdge &&
         d.Height <= kMaxLayerEdge;
}

// Checks the extents of any kind of array against the device's limits.
bool HasLegalExtents(const CUDA_ARRAY3D_DESCRIPTOR& d) {
  if (d.Width == 0) return false;
  if ((d.Flags & CUDA_ARRAY3D_CUBEMAP) != 0) return FitsCube(d);
  if ((d.Flags & CUDA_ARRAY3D_LAYERED) != 0) return FitsLayers(d);
  if (d.Depth != 0) {
    return d.Height != 0 && d.Width <= kMaxVolumeEdge && d.Height <= kMaxVolumeEdge &&
           d.Depth <= kMaxVolumeEdge;
  }
  return d.Width <= kMaxTextureWidth && d.Height <= kMaxTextureHeight;
}

// Layers do not shrink from level to level.
bool HasSlicesThatShrink(const CUDA_ARRAY3D_DESCRIPTOR& d) {
  return (d.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) == 0;
}

// The extent of a mipmap level; 0 means that the dimension does not exist.
std::size_t Halved(std::size_t extent, unsigned times) {
  return extent == 0 ? 0 : std::max<std::size_t>(extent >> times, 1);
}

// Describes a level of a mipmapped array.
CUDA_ARRAY3D_DESCRIPTOR LevelOf(CUDA_ARRAY3D_DESCRIPTOR description, unsigned level) {
  description.Width = Halved(description.Width, level);
  description.Height = Halved(description.Height, level);
  if (HasSlicesThatShrink(description)) description.Depth = Halved(description.Depth, level);
  return description;
}

// Lays out a level: rows are aligned, and slices follow each other. The memory comes later.
TextureLevel LayOut(const CUDA_ARRAY3D_DESCRIPTOR& description, const TexelFormat& format) {
  TextureLevel level;
  level.width = static_cast<std::uint32_t>(description.Width);
  level.height = static_cast<std::uint32_t>(std::max<std::size_t>(description.Height, 1));
  level.slices = static_cast<std::uint32_t>(std::max<std::size_t>(description.Depth, 1));
  level.row_pitch = RoundUp(description.Width * format.bytes(), kRowAlignment);
  level.slice_pitch = level.row_pitch * level.height;
  return level;
}

}  // namespace

std::optional<TexelFormat> ToTexelFormat(CUarray_format format, unsigned channels) {
  if (channels != 1 && channels != 2 && channels != 4) return std::nullopt;
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
      return TexelFormat{ChannelType::kUnsigned8, channels};
    case CU_AD_FORMAT_UNSIGNED_INT16:
      return TexelFormat{ChannelType::kUnsigned16, channels};
    case CU_AD_FORMAT_UNSIGNED_INT32:
      return TexelFormat{ChannelType::kUnsigned32, channels};
    case CU_AD_FORMAT_SIGNED_INT8:
      return TexelFormat{ChannelType::kSigned8, channels};
    case CU_AD_FORMAT_SIGNED_INT16:
      return TexelFormat{ChannelType::kSigned16, channels};
    case CU_AD_FORMAT_SIGNED_INT32:
      return TexelFormat{ChannelType::kSigned32, channels};
    case CU_AD_FORMAT_HALF:
      return TexelFormat{ChannelType::kHalf, channels};
    case CU_AD_FORMAT_FLOAT:
      return TexelFormat{ChannelType::kFloat, channels};
    default:
      return std::nullopt;
  }
}

std::shared_ptr<ArrayMemory> ArrayMemory::Create(Bytes size, DriverDevice& device) {
  size = RoundUp(size, kAllocationUnit);
  if (!device.budget().Take(size)) return nullptr;
  void* const data = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) {
    device.budget().Return(size);
    return nullptr;
  }
  return std::make_shared<ArrayMemory>(static_cast<std::uint8_t*>(data), size, device);
}

ArrayMemory::~ArrayMemory() {
  munmap(data_, size_);
  device_.budget().Return(size_);
}

DriverResult<std::vector<std::shared_ptr<Array>>> MakeArrays(
    const CUDA_ARRAY3D_DESCRIPTOR& description, unsigned levels, DriverDevice& device) {
  const auto format = ToTexelFormat(description.Format, description.NumChannels);
  if (!format || (description.Flags & ~kArrayFlags) != 0) {
    return Failure<CUresult>{CUDA_ERROR_NOT_SUPPORTED, "this kind of array"};
  }
  if (!HasLegalExtents(description)) return InvalidValue("an array of these extents");
  const std::size_t longest =
      std::max({description.Width, description.Height,
                HasSlicesThatShrink(description) ? description.Depth : std::size_t{0}});
  if (levels > static_cast<unsigned>(std::bit_width(longest)))
    return InvalidValue("too many levels");
  std::vector<std::shared_ptr<Array>> arrays;
  Bytes total = 0;
  for (unsigned i = 0; i < levels; ++i) {
    auto array = std::make_shared<Array>();
    array->description = LevelOf(description, i);
    array->format = *format;
    array->level = LayOut(array->description, *format);
    array->is_level = levels > 1;
    total += array->level.slice_pitch * array->level.slices;
    arrays.push_back(std::move(array));
  }
  const auto memory = ArrayMemory::Create(total, device);
  if (memory == nullptr) return Failure<CUresult>{CUDA_ERROR_OUT_OF_MEMORY, "no room for an array"};
  std::uint8_t* data = memory->data();
  for (const auto& array : arrays) {
    array->level.data = data;
    array->memory = memory;
    data += array->level.slice_pitch * array->level.slices;
  }
  return arrays;
}

}  // namespace torpor::emulator
