#include "emulator/driver/texture/make_texture.h"

#include <algorithm>

#include "emulator/driver/device/device_limits.h"

namespace torpor::emulator {
namespace {

constexpr unsigned kTextureFlags = CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES |
                                   CU_TRSF_SRGB | CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION |
                                   CU_TRSF_SEAMLESS_CUBEMAP;

Failure<CUresult> NotSupported(const char* why) { return {CUDA_ERROR_NOT_SUPPORTED, why}; }

using Outcome = DriverResult<void>;

bool HasFlag(const CUDA_TEXTURE_DESC& texture, unsigned flag) {
  return (texture.flags & flag) != 0;
}

// The texels themselves.
Outcome UseArray(CUarray handle, const ResourceTables& resources, Texture& texture) {
  const Array* array = resources.arrays.Get(handle);
  if (array == nullptr) return InvalidValue("no array");
  texture.format = array->format;
  texture.levels = {array->level};
  texture.memory = array->memory;
  return {};
}

// All levels share one format and one memory.
Outcome UseMipmappedArray(CUmipmappedArray handle, const ResourceTables& resources,
                          Texture& texture) {
  const MipmappedArray* mipmapped = resources.mipmapped_arrays.Get(handle);
  if (mipmapped == nullptr) return InvalidValue("no mipmapped array");
  for (CUarray level : mipmapped->levels) {
    const Array* array = resources.arrays.Get(level);
    if (array == nullptr) return InvalidValue("no mipmapped array");
    texture.format = array->format;
    texture.levels.push_back(array->level);
    texture.memory = array->memory;
  }
  return {};
}

// Uses linear memory as a single level; the memory remains the application's.
Outcome UseMemory(CUdeviceptr address, Bytes bytes, const TextureLevel& shape,
                  const ResourceTables& resources, Texture& texture) {
  const bool is_memory = resources.space.Covers(address, bytes, Access::kRead);
  if (!is_memory || address % kTextureAlignment != 0)
    return InvalidValue("no aligned device memory");
  texture.levels = {shape};
  texture.levels[0].data = reinterpret_cast<std::uint8_t*>(address);
  texture.levels[0].slice_pitch = bytes;
  return {};
}

// A one-dimensional texture in linear memory.
Outcome UseLinear(const CUDA_RESOURCE_DESC& resource, const ResourceTables& resources,
                  Texture& texture) {
  const auto& linear = resource.res.linear;
  const auto format = ToTexelFormat(linear.format, linear.numChannels);
  if (!format) return InvalidValue("no format of texels");
  const Bytes texels = linear.sizeInBytes / format->bytes();
  if (texels == 0 || texels > kMaxLinearTexels) return InvalidValue("too few or too many texels");
  texture.format = *format;
  texture.is_linear_memory = true;
  TextureLevel shape;
  shape.width = static_cast<std::uint32_t>(texels);
  return UseMemory(linear.devPtr, texels * format->bytes(), shape, resources, texture);
}

// A two-dimensional texture in pitched linear memory.
Outcome UsePitched(const CUDA_RESOURCE_DESC& resource, const ResourceTables& resources,
                   Texture& texture) {
  const auto& pitched = resource.res.pitch2D;
  const auto format = ToTexelFormat(pitched.format, pitched.numChannels);
  if (!format) return InvalidValue("no format of texels");
  if (pitched.width == 0 || pitched.height == 0 || pitched.width > kMaxTextureWidth ||
      pitched.height > kMaxTextureHeight) {
    return InvalidValue("too few or too many texels");
  }
  const Bytes row = pitched.width * format->bytes();
  if (pitched.pitchInBytes < row || pitched.pitchInBytes % kTexturePitchAlignment != 0 ||
      pitched.pitchInBytes > kMaxLinearTexels) {
    return InvalidValue("a pitch that is too small or not aligned");
  }
  texture.format = *format;
  TextureLevel shape;
  shape.width = static_cast<std::uint32_t>(pitched.width);
  shape.height = static_cast<std::uint32_t>(pitched.height);
  shape.row_pitch = pitched.pitchInBytes;
  const Bytes bytes = (pitched.height - 1) * pitched.pitchInBytes + row;
  return UseMemory(pitched.devPtr, bytes, shape, resources, texture);
}

Outcome UseResource(const CUDA_RESOURCE_DESC& resource, const ResourceTables& resources,
                    Texture& texture) {
  if (resource.flags != 0) return InvalidValue("flags of a resource");
  switch (resource.resType) {
    case CU_RESOURCE_TYPE_ARRAY:
      return UseArray(resource.res.array.hArray, resources, texture);
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
      return UseMipmappedArray(resource.res.mipmap.hMipmappedArray, resources, texture);
    case CU_RESOURCE_TYPE_LINEAR:
      return UseLinear(resource, resources, texture);
    case CU_RESOURCE_TYPE_PITCH2D:
      return UsePitched(resource, resources, texture);
  }
  return InvalidValue("this type of resource");
}

// Formats come in groups of three: one, two and four channels.
std::optional<TexelFormat> ViewFormat(CUresourceViewFormat format) {
  constexpr ChannelType kTypes[] = {ChannelType::kUnsigned8,  ChannelType::kSigned8,
                                    ChannelType::kUnsigned16, ChannelType::kSigned16,
                                    ChannelType::kUnsigned32, ChannelType::kSigned32,
                                    ChannelType::kHalf,       ChannelType::kFloat};
  if (format < CU_RES_VIEW_FORMAT_UINT_1X8 || format > CU_RES_VIEW_FORMAT_FLOAT_4X32) {
    return std::nullopt;
  }
  const auto place = static_cast<unsigned>(format - CU_RES_VIEW_FORMAT_UINT_1X8);
  return TexelFormat{kTypes[place / 3], 1U << (place % 3)};
}

// `flags` are the array's.
Outcome NarrowTo(const CUDA_RESOURCE_VIEW_DESC& view, unsigned flags, Texture& texture) {
  if (texture.memory == nullptr) return InvalidValue("a view of linear memory");
  if (view.format != CU_RES_VIEW_FORMAT_NONE) {
    const auto format = ViewFormat(view.format);
    if (!format) return NotSupported("a compressed texture");
    if (format->bytes() != texture.format.bytes())
      return InvalidValue("a view of another texel size");
    texture.format = *format;
  }
  const TextureLevel& base = texture.levels[0];
  if (view.width != base.width || std::max<size_t>(view.height, 1) != base.height ||
      view.lastMipmapLevel < view.firstMipmapLevel ||
      view.lastMipmapLevel >= texture.levels.size() || view.lastLayer < view.firstLayer ||
      view.lastLayer >= base.slices) {
    return InvalidValue("a view that its resource does not contain");
  }
  // The slices of a volume are no layers, and get fewer from level to level.
  const bool has_layers = (flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) != 0;
  if (view.lastLayer != 0 && !has_layers) return InvalidValue("a view of layers of what has none");
  texture.levels.erase(texture.levels.begin() + view.lastMipmapLevel + 1, texture.levels.end());
  texture.levels.erase(texture.levels.begin(), texture.levels.begin() + view.firstMipmapLevel);
  if (view.lastLayer == 0) return {};  // also what a view of no layers says
  for (TextureLevel& level : texture.levels) {
    level.data += view.firstLayer * level.slice_pitch;
    level.slices = view.lastLayer - view.firstLayer + 1;
  }
  return {};
}

// Integers of 8 and 16 bits may be read as numbers from 0 (or -1) to 1.
bool IsNarrowInteger(const TexelFormat& format) {
  return !IsFloatingPoint(format.type) && ChannelBytes(format.type) < 4;
}

// Takes the sampling modes, and refuses combinations that CUDA forbids.
Outcome Sampling(const CUDA_TEXTURE_DESC& description, Texture& texture) {
  texture.has_normalized_coordinates = HasFlag(description, CU_TRSF_NORMALIZED_COORDINATES);
  texture.has_normalized_values =
      !HasFlag(description, CU_TRSF_READ_AS_INTEGER) && IsNarrowInteger(texture.format);
  texture.is_srgb = HasFlag(description, CU_TRSF_SRGB);
  texture.blends_levels = description.mipmapFilterMode == CU_TR_FILTER_MODE_LINEAR;
  texture.level_bias = description.mipmapLevelBias;
  texture.min_level = description.minMipmapLevelClamp;
  texture.max_level = description.maxMipmapLevelClamp;
  std::copy_n(description.borderColor, texture.border.size(), texture.border.begin());
  for (std::size_t i = 0; i < texture.address.size(); ++i) {
    if (description.addressMode[i] > CU_TR_ADDRESS_MODE_BORDER) return InvalidValue("address mode");
    texture.address[i] = static_cast<AddressMode>(description.addressMode[i]);
  }
  const bool reads_floats = texture.has_normalized_values || IsFloatingPoint(texture.format.type);
  // NVIDIA's driver takes a filter between integers; its runtime does not.
  texture.filters = reads_floats && description.filterMode == CU_TR_FILTER_MODE_LINEAR;
  if (texture.is_srgb &&
      (!texture.has_normalized_values || ChannelBytes(texture.format.type) > 1)) {
    return InvalidValue("sRGB of other than normalised bytes");
  }
  if (texture.levels.size() > 1 && !texture.has_normalized_coordinates) {
    return InvalidValue("levels with coordinates that are not normalised");
  }
  return {};
}

// Returns the flags of the resource's array, or 0 for other resources.
unsigned ArrayFlags(const CUDA_RESOURCE_DESC& resource, const ResourceTables& resources) {
  const auto flags_of = [](const auto* array) {
    return array == nullptr ? 0 : array->description.Flags;
  };
  switch (resource.resType) {
    case CU_RESOURCE_TYPE_ARRAY:
      return flags_of(resources.arrays.Get(resource.res.array.hArray));
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
      return flags_of(resources.mipmapped_arrays.Get(resource.res.mipmap.hMipmappedArray));
    default:
      return 0;
  }
}

}  // namespace

DriverResult<Texture> MakeTexture(const TextureRequest& request, const ResourceTables& resources) {
  if ((request.texture.flags & ~kTextureFlags) != 0) return InvalidValue("flags of a texture");
  const unsigned array_flags = ArrayFlags(request.resource, resources);
  if (HasFlag(request.texture, CU_TRSF_SEAMLESS_CUBEMAP) &&
      (array_flags & CUDA_ARRAY3D_CUBEMAP) != 0) {
    return NotSupported("a seamless cubemap");
  }
  Texture texture;
  if (auto used = UseResource(request.resource, resources, texture); !used.ok())
    return used.failure();
  if (request.view) {
    if (auto narrowed = NarrowTo(*request.view, array_flags, texture); !narrowed.ok()) {
      return narrowed.failure();
    }
  }
  if (auto sampled = Sampling(request.texture, texture); !sampled.ok()) return sampled.failure();
  return texture;
}

DriverResult<Surface> MakeSurface(const CUDA_RESOURCE_DESC& resource,
                                  const ResourceTables& resources) {
  if (resource.resType != CU_RESOURCE_TYPE_ARRAY || resource.flags != 0) {
    return InvalidValue("a surface of other than an array");
  }
  const Array* array = resources.arrays.Get(resource.res.array.hArray);
  // As in NVIDIA's driver, an array made without CUDA_ARRAY3D_SURFACE_LDST is taken, too.
  if (array == nullptr) return InvalidValue("no array");
  return Surface{array->format, array->level, array->memory};
}

}  // namespace torpor::emulator
