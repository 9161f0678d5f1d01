#include "server/executor/runtime/texture_calls.h"

#include <algorithm>

#include "server/executor/gpu/call_status.h"

namespace torpor::executor {

using cuda_api::CallStatus;

namespace {

CUDA_TEXTURE_DESC SamplingOf(const wire::TextureCreate& command) {
  CUDA_TEXTURE_DESC texture{};
  for (std::size_t i = 0; i < command.address_modes.size(); ++i) {
    texture.addressMode[i] = static_cast<CUaddress_mode>(command.address_modes[i]);
  }
  texture.filterMode = static_cast<CUfilter_mode>(command.filter);
  texture.flags = command.flags;
  texture.maxAnisotropy = command.max_anisotropy;
  texture.mipmapFilterMode = static_cast<CUfilter_mode>(command.level_filter);
  texture.mipmapLevelBias = command.level_bias;
  texture.minMipmapLevelClamp = command.min_level;
  texture.maxMipmapLevelClamp = command.max_level;
  std::copy(command.border.begin(), command.border.end(), texture.borderColor);
  return texture;
}

CUDA_RESOURCE_VIEW_DESC ViewOf(const wire::TextureCreate& command) {
  CUDA_RESOURCE_VIEW_DESC view{};
  view.format = static_cast<CUresourceViewFormat>(command.view_format);
  view.width = command.view_extent[0];
  view.height = command.view_extent[1];
  view.depth = command.view_extent[2];
  view.firstMipmapLevel = command.view_levels[0];
  view.lastMipmapLevel = command.view_levels[1];
  view.firstLayer = command.view_layers[0];
  view.lastLayer = command.view_layers[1];
  return view;
}

Bytes TexelBytes(const wire::TextureCreate& command) {
  return SessionArrays::ChannelBytes(command.format) * command.channels;
}

// Bytes that a texture of linear or pitched memory reads; false on overflow.
bool TextureBytes(const wire::TextureCreate& command, Bytes& bytes) {
  if (command.resource == wire::TextureResource::kLinear) {
    bytes = command.width;
    return bytes > 0;
  }
  Bytes row = 0;
  return command.width > 0 && command.height > 0 &&
         !__builtin_mul_overflow(command.width, TexelBytes(command), &row) &&
         row <= command.pitch &&
         !__builtin_mul_overflow(command.pitch, command.height - 1, &bytes) &&
         !__builtin_add_overflow(bytes, row, &bytes);
}

}  // namespace

bool TextureCalls::ArrayResource(std::uint64_t id, std::uint32_t level,
                                 CUDA_RESOURCE_DESC& resource) const {
  const SessionArrays::Level* found = parts_.arrays.Find(id, level);
  if (found == nullptr) return false;
  resource.resType = CU_RESOURCE_TYPE_ARRAY;
  resource.res.array.hArray = found->array;
  return true;
}

bool TextureCalls::MemoryResource(const wire::TextureCreate& command, CUDA_RESOURCE_DESC& resource,
                                  SessionTextures::Memory& memory) const {
  Bytes bytes = 0;
  if (!TextureBytes(command, bytes)) return false;
  memory = {command.source, bytes};
  const CUdeviceptr address = parts_.memory.Device(command.source, bytes, cuda_api::Access::kRead);
  if (address == 0) return false;
  const auto format = static_cast<CUarray_format>(command.format);
  if (command.resource == wire::TextureResource::kLinear) {
    resource.resType = CU_RESOURCE_TYPE_LINEAR;
    resource.res.linear.devPtr = address;
    resource.res.linear.format = format;
    resource.res.linear.numChannels = command.channels;
    resource.res.linear.sizeInBytes = command.width;
  } else {
    resource.resType = CU_RESOURCE_TYPE_PITCH2D;
    resource.res.pitch2D.devPtr = address;
    resource.res.pitch2D.format = format;
    resource.res.pitch2D.numChannels = command.channels;
    resource.res.pitch2D.width = command.width;
    resource.res.pitch2D.height = command.height;
    resource.res.pitch2D.pitchInBytes = command.pitch;
  }
  return true;
}

bool TextureCalls::ResourceOf(const wire::TextureCreate& command, CUDA_RESOURCE_DESC& resource,
                              SessionTextures::Memory& memory) const {
  switch (command.resource) {
    case wire::TextureResource::kArray:
      return ArrayResource(command.source, command.level, resource);
    case wire::TextureResource::kMipmappedArray:
      resource.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
      resource.res.mipmap.hMipmappedArray = parts_.arrays.FindMipmapped(command.source);
      return resource.res.mipmap.hMipmappedArray != nullptr;
    case wire::TextureResource::kLinear:
    case wire::TextureResource::kPitched:
      return MemoryResource(command, resource, memory);
  }
  return false;
}

CallStatus TextureCalls::TextureCreate(const wire::TextureCreate& command) {
  CUDA_RESOURCE_DESC resource{};
  SessionTextures::Memory memory;
  if (!ResourceOf(command, resource, memory)) {
    parts_.textures.AddBroken(
        command.texture,
        absl::InvalidArgumentError("a texture of no array or memory of this session"));
    return {};
  }
  const CUDA_TEXTURE_DESC texture = SamplingOf(command);
  const CUDA_RESOURCE_VIEW_DESC view = ViewOf(command);
  parts_.textures.AddTexture(command.texture, resource, texture,
                             command.has_view != 0 ? &view : nullptr, memory);
  return {};
}

absl::Status TextureCalls::Rebind() {
  if (!parts_.session_memory.is_translating()) return absl::OkStatus();
  return parts_.textures.Rebind([this](const SessionTextures::Memory& memory) {
    return parts_.session_memory.Resolve(memory.address, memory.bytes);
  });
}

CallStatus TextureCalls::SurfaceCreate(const wire::SurfaceCreate& command) {
  CUDA_RESOURCE_DESC resource{};
  if (ArrayResource(command.array, command.level, resource)) {
    parts_.textures.AddSurface(command.surface, resource);
  } else {
    parts_.textures.AddBroken(command.surface,
                              absl::InvalidArgumentError("a surface of no array of this session"));
  }
  return {};
}

// Earlier kernels may still use the object, as on a real GPU.
CallStatus TextureCalls::ImageObjectDestroy(const wire::ImageObjectDestroy& command) {
  const CUresult drained = parts_.streams.Synchronize();
  if (drained != CUDA_SUCCESS)
    return ToCallStatus(parts_.device.driver(), drained, "destroying a texture or surface");
  return ToCallStatus(parts_.textures.Remove(command.object), "destroying a texture or surface");
}

CallStatus TextureCalls::ImageObjectPublish(const wire::ImageObjectPublish& command) {
  return ToCallStatus(parts_.textures.Publish(command.object, command.known_as),
                      "value of a texture or surface");
}

CallStatus TextureCalls::ImageObjectValue(const wire::ImageObjectValue& command,
                                          wire::ImageObjectValueResult& result) {
  const absl::StatusOr<std::uint64_t> value = parts_.textures.ValueOf(command.object);
  if (value.ok()) result.known_as = *value;
  return ToCallStatus(value.status(), "texture or surface");
}

}  // namespace torpor::executor
