// Arrays, copies of three dimensions, texture and surface objects.
#include <driver_types.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/executor/gpu/call_status.h"
#include "server/executor/runtime/cudart_calls.h"

namespace torpor::executor {

using cuda_api::CallFailed;
using cuda_api::CallStatus;

namespace {

// One side of a copy as the command has it.
struct CopySide {
  wire::MemorySide kind;
  std::uint64_t what;
  std::uint32_t level;
  std::array<std::uint64_t, 3> position;
  std::uint64_t pitch;
  std::uint64_t rows;
};

bool Fits(std::uint64_t begin, std::uint64_t size, std::uint64_t limit) {
  return begin <= limit && size <= limit - begin;
}

// Bytes from the first byte of linear memory that is copied to the end of the last; false if that
// is no number or rows overlap.
bool Extent3D(const wire::Memcpy3D& copy, const CopySide& side, Bytes& extent) {
  if (copy.width > side.pitch || copy.height > side.rows) return false;
  Bytes slice = 0;
  Bytes slices = 0;
  Bytes rows = 0;
  return !__builtin_mul_overflow(side.pitch, side.rows, &slice) &&
         !__builtin_mul_overflow(slice, copy.depth - 1, &slices) &&
         !__builtin_mul_overflow(side.pitch, copy.height - 1, &rows) &&
         !__builtin_add_overflow(slices, rows, &extent) &&
         !__builtin_add_overflow(extent, copy.width, &extent);
}

bool Contains(const SessionArrays::Level& level, const wire::Memcpy3D& copy, const CopySide& side) {
  const auto [x, y, z] = side.position;
  return Fits(x, copy.width, level.row_bytes) && Fits(y, copy.height, level.rows) &&
         Fits(z, copy.depth, level.slices);
}

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

// Bytes that a texture of linear or pitched memory reads; false if that is no number.
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

CallStatus CudartCalls::ArrayCreate(const wire::ArrayCreate& command) {
  memory_.image().touches().UseAll();
  CUstream stream = nullptr;
  const CUresult used = streams_.Use(StreamSet::kLegacy, stream);
  if (used != CUDA_SUCCESS) return Outcome(used, "creating an array");
  return ToCallStatus(arrays_.Create(command, stream), "creating an array");
}

CallStatus CudartCalls::ArrayDestroy(const wire::ArrayDestroy& command) {
  if (CallStatus arrived = AwaitArrival("destroying an array"); !arrived.ok()) return arrived;
  const CUresult drained = streams_.Synchronize();
  if (drained != CUDA_SUCCESS) return Outcome(drained, "destroying an array");
  return ToCallStatus(arrays_.Destroy(command.array), "destroying an array");
}

CallStatus CudartCalls::ArrayCheck(const wire::ArrayCheck& command, wire::ArrayCheckResult&) {
  if (arrays_.Find(command.array, 0) != nullptr) return {};
  return CallFailed(cudaErrorInvalidResourceHandle,
                    absl::StrCat("the session has no array ", command.array));
}

bool CudartCalls::Side3D(const wire::Memcpy3D& copy, bool is_target, CUDA_MEMCPY3D& driver_copy) {
  const CopySide side = is_target ? CopySide{copy.dst_side,     copy.dst,       copy.dst_level,
                                             copy.dst_position, copy.dst_pitch, copy.dst_rows}
                                  : CopySide{copy.src_side,     copy.src,       copy.src_level,
                                             copy.src_position, copy.src_pitch, copy.src_rows};
  const auto access = is_target ? cuda_api::Access::kWrite : cuda_api::Access::kRead;
  CUmemorytype type = CU_MEMORYTYPE_ARRAY;
  CUdeviceptr device = 0;
  void* host = nullptr;
  CUarray array = nullptr;
  if (side.kind == wire::MemorySide::kArray) {
    const SessionArrays::Level* level = arrays_.Find(side.what, side.level);
    if (level == nullptr || !Contains(*level, copy, side)) return false;
    array = level->array;
    memory_.image().touches().UseAll();
  } else {
    Bytes extent = 0;
    if (!Extent3D(copy, side, extent) ||
        !Side2D(side.kind, side.what, extent, access, type, device, host)) {
      return false;
    }
    const bool is_upload = is_target && copy.src_side == wire::MemorySide::kArena;
    if (is_upload) memory_.image().NoteUnseenUpload(side.what, extent);
  }
  const auto [x, y, z] = array != nullptr ? side.position : std::array<std::uint64_t, 3>{};
  if (is_target) {
    driver_copy.dstMemoryType = type;
    driver_copy.dstDevice = device;
    driver_copy.dstHost = host;
    driver_copy.dstArray = array;
    driver_copy.dstXInBytes = x;
    driver_copy.dstY = y;
    driver_copy.dstZ = z;
    driver_copy.dstPitch = side.pitch;
    driver_copy.dstHeight = side.rows;
  } else {
    driver_copy.srcMemoryType = type;
    driver_copy.srcDevice = device;
    driver_copy.srcHost = host;
    driver_copy.srcArray = array;
    driver_copy.srcXInBytes = x;
    driver_copy.srcY = y;
    driver_copy.srcZ = z;
    driver_copy.srcPitch = side.pitch;
    driver_copy.srcHeight = side.rows;
  }
  return true;
}

CallStatus CudartCalls::Memcpy3D(const wire::Memcpy3D& command) {
  if (command.width == 0 || command.height == 0 || command.depth == 0) return {};
  CUDA_MEMCPY3D copy{};
  if (!Side3D(command, /*is_target=*/true, copy) || !Side3D(command, /*is_target=*/false, copy)) {
    return NotOwned("three-dimensional copy");
  }
  copy.WidthInBytes = command.width;
  copy.Height = command.height;
  copy.Depth = command.depth;
  if (command.dst_side != wire::MemorySide::kArena) memory_.image().MarkDirty();
  CUstream stream = nullptr;
  CUresult result = streams_.Use(command.stream, stream);
  if (result == CUDA_SUCCESS) result = driver().Memcpy3DAsync(&copy, stream);
  return Outcome(result, "three-dimensional copy");
}

bool CudartCalls::ArrayResource(std::uint64_t id, std::uint32_t level,
                                CUDA_RESOURCE_DESC& resource) const {
  const SessionArrays::Level* found = arrays_.Find(id, level);
  if (found == nullptr) return false;
  resource.resType = CU_RESOURCE_TYPE_ARRAY;
  resource.res.array.hArray = found->array;
  return true;
}

bool CudartCalls::MemoryResource(const wire::TextureCreate& command, CUDA_RESOURCE_DESC& resource,
                                 SessionTextures::Memory& memory) const {
  Bytes bytes = 0;
  if (!TextureBytes(command, bytes)) return false;
  memory = {command.source, bytes};
  const CUdeviceptr address = DeviceMemory(command.source, bytes, cuda_api::Access::kRead);
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

bool CudartCalls::ResourceOf(const wire::TextureCreate& command, CUDA_RESOURCE_DESC& resource,
                             SessionTextures::Memory& memory) const {
  switch (command.resource) {
    case wire::TextureResource::kArray:
      return ArrayResource(command.source, command.level, resource);
    case wire::TextureResource::kMipmappedArray:
      resource.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
      resource.res.mipmap.hMipmappedArray = arrays_.FindMipmapped(command.source);
      return resource.res.mipmap.hMipmappedArray != nullptr;
    case wire::TextureResource::kLinear:
    case wire::TextureResource::kPitched:
      return MemoryResource(command, resource, memory);
  }
  return false;
}

CallStatus CudartCalls::TextureCreate(const wire::TextureCreate& command) {
  CUDA_RESOURCE_DESC resource{};
  SessionTextures::Memory memory;
  if (!ResourceOf(command, resource, memory)) {
    textures_.AddBroken(command.texture, absl::InvalidArgumentError(
                                             "a texture of no array or memory of this session"));
    return {};
  }
  const CUDA_TEXTURE_DESC texture = SamplingOf(command);
  const CUDA_RESOURCE_VIEW_DESC view = ViewOf(command);
  textures_.AddTexture(command.texture, resource, texture, command.has_view != 0 ? &view : nullptr,
                       memory);
  return {};
}

absl::Status CudartCalls::RebindTextures() {
  if (!memory_.is_translating()) return absl::OkStatus();
  return textures_.Rebind([this](const SessionTextures::Memory& memory) {
    return memory_.Resolve(memory.address, memory.bytes);
  });
}

CallStatus CudartCalls::SurfaceCreate(const wire::SurfaceCreate& command) {
  CUDA_RESOURCE_DESC resource{};
  if (ArrayResource(command.array, command.level, resource)) {
    textures_.AddSurface(command.surface, resource);
  } else {
    textures_.AddBroken(command.surface,
                        absl::InvalidArgumentError("a surface of no array of this session"));
  }
  return {};
}

// Kernels that were launched before may still use the object, as they may on a GPU in practice.
CallStatus CudartCalls::ImageObjectDestroy(const wire::ImageObjectDestroy& command) {
  const CUresult drained = streams_.Synchronize();
  if (drained != CUDA_SUCCESS) return Outcome(drained, "destroying a texture or surface");
  return ToCallStatus(textures_.Remove(command.object), "destroying a texture or surface");
}

CallStatus CudartCalls::ImageObjectPublish(const wire::ImageObjectPublish& command) {
  return ToCallStatus(textures_.Publish(command.object, command.known_as),
                      "value of a texture or surface");
}

CallStatus CudartCalls::ImageObjectValue(const wire::ImageObjectValue& command,
                                         wire::ImageObjectValueResult& result) {
  const absl::StatusOr<std::uint64_t> value = textures_.ValueOf(command.object);
  if (value.ok()) result.known_as = *value;
  return ToCallStatus(value.status(), "texture or surface");
}

}  // namespace torpor::executor
