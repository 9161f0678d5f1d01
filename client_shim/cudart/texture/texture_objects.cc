#include "client_shim/cudart/texture/texture_objects.h"

#include <cuda.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

#include "client_shim/cudart/call/entry.h"
#include "client_shim/cudart/call/per_device.h"
#include "client_shim/cudart/texture/arrays.h"

namespace torpor::shim {
namespace {

// A texture or surface object, with the descriptions for queries.
struct TextureObject {
  std::uint64_t wire = 0;
  cudaResourceDesc resource{};
  cudaTextureDesc texture{};  // all zero for a surface
  std::optional<cudaResourceViewDesc> view;
};

// Live objects by the program's value. Thread-safe.
class TextureObjects {
 public:
  // Returns false if another live object has the value.
  bool Insert(std::uint64_t value, const TextureObject& object) {
    std::lock_guard lock(mutex_);
    return objects_.emplace(value, object).second;
  }
  std::optional<TextureObject> Take(std::uint64_t value) {
    std::lock_guard lock(mutex_);
    const auto found = objects_.find(value);
    if (found == objects_.end()) return std::nullopt;
    const std::optional<TextureObject> object = found->second;
    objects_.erase(found);
    return object;
  }
  std::optional<TextureObject> Find(std::uint64_t value) {
    std::lock_guard lock(mutex_);
    const auto found = objects_.find(value);
    return found == objects_.end() ? std::nullopt : std::optional(found->second);
  }
  std::unordered_map<std::uint64_t, TextureObject> TakeAll() {
    std::lock_guard lock(mutex_);
    return std::exchange(objects_, {});
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::uint64_t, TextureObject> objects_;
};

// Per device, since drivers give objects of different GPUs equal values.
TextureObjects& TheTextures() {
  static auto* const textures = new PerDevice<TextureObjects>();
  return textures->here();
}

TextureObjects& TheSurfaces() {
  static auto* const surfaces = new PerDevice<TextureObjects>();
  return surfaces->here();
}

cudaError_t DestroyObjectWire(std::uint64_t wire) {
  return Core().Destroy(wire, Encode(wire::ImageObjectDestroy{wire}));
}

// Asks for the value of a new object and notes the value in the journal for later executors.
cudaError_t Name(TextureObjects& objects, const TextureObject& object, unsigned long long* out) {
  wire::ImageObjectValueResult result;
  TORPOR_TRY(Ask(wire::ImageObjectValue{object.wire}, result));
  if (!objects.Insert(result.known_as, object)) {
    Core().WarnOnce("image object", "two textures or surfaces of different GPUs have one value");
    return cudaErrorNotSupported;
  }
  *out = result.known_as;
  return Core().Configure(object.wire,
                          Encode(wire::ImageObjectPublish{object.wire, result.known_as}));
}

template <typename Message>
// Creates the object at the executor; destroys the object again if the value cannot be used.
cudaError_t Create(TextureObjects& objects, const TextureObject& object, const Message& create,
                   unsigned long long* out) {
  TORPOR_TRY(Core().Create(object.wire, Encode(create)));
  const cudaError_t error = Name(objects, object, out);
  if (error != cudaSuccess) DestroyObjectWire(object.wire);
  return error;
}

// Describes a texture over linear or pitched device memory.
cudaError_t SetMemory(const cudaChannelFormatDesc& description, const void* memory,
                      wire::TextureCreate& create) {
  ChannelFormat format;
  TORPOR_TRY(ToChannelFormat(description, format));
  create.format = format.format;
  create.channels = format.channels;
  create.source = Address(memory);
  return cudaSuccess;
}

// Translates the memory behind a texture: an array, a mipmapped array, linear or pitched memory.
cudaError_t SetResource(const cudaResourceDesc& resource, wire::TextureCreate& create) {
  switch (resource.resType) {
    case cudaResourceTypeArray: {
      ClientArrayPtr array;
      TORPOR_TRY(FindArray(resource.res.array.array, array));
      create.resource = wire::TextureResource::kArray;
      create.source = array->wire;
      create.level = array->level;
      return cudaSuccess;
    }
    case cudaResourceTypeMipmappedArray: {
      ClientMipmappedArrayPtr array;
      TORPOR_TRY(FindMipmappedArray(resource.res.mipmap.mipmap, array));
      create.resource = wire::TextureResource::kMipmappedArray;
      create.source = array->wire;
      return cudaSuccess;
    }
    case cudaResourceTypeLinear:
      create.resource = wire::TextureResource::kLinear;
      create.width = resource.res.linear.sizeInBytes;
      return SetMemory(resource.res.linear.desc, resource.res.linear.devPtr, create);
    case cudaResourceTypePitch2D:
      create.resource = wire::TextureResource::kPitched;
      create.width = resource.res.pitch2D.width;
      create.height = resource.res.pitch2D.height;
      create.pitch = resource.res.pitch2D.pitchInBytes;
      return SetMemory(resource.res.pitch2D.desc, resource.res.pitch2D.devPtr, create);
  }
  return cudaErrorInvalidValue;
}

// Translates the runtime's fields to the driver's flags (CU_TRSF_...).
std::uint32_t FlagsOf(const cudaTextureDesc& texture) {
  std::uint32_t flags = 0;
  if (texture.readMode == cudaReadModeElementType) flags |= CU_TRSF_READ_AS_INTEGER;
  if (texture.normalizedCoords != 0) flags |= CU_TRSF_NORMALIZED_COORDINATES;
  if (texture.sRGB != 0) flags |= CU_TRSF_SRGB;
  if (texture.disableTrilinearOptimization != 0) flags |= CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION;
  if (texture.seamlessCubemap != 0) flags |= CU_TRSF_SEAMLESS_CUBEMAP;
  return flags;
}

// Runtime and driver number modes and formats of views alike.
void SetSampling(const cudaTextureDesc& texture, wire::TextureCreate& create) {
  for (std::size_t i = 0; i < create.address_modes.size(); ++i)
    create.address_modes[i] = static_cast<std::uint32_t>(texture.addressMode[i]);
  create.filter = static_cast<std::uint32_t>(texture.filterMode);
  create.flags = FlagsOf(texture);
  create.max_anisotropy = texture.maxAnisotropy;
  create.level_filter = static_cast<std::uint32_t>(texture.mipmapFilterMode);
  create.level_bias = texture.mipmapLevelBias;
  create.min_level = texture.minMipmapLevelClamp;
  create.max_level = texture.maxMipmapLevelClamp;
  std::copy_n(texture.borderColor, create.border.size(), create.border.begin());
}

// Sets the part of the resource, and the format, under which the texture shows the texels.
void SetView(const cudaResourceViewDesc& view, wire::TextureCreate& create) {
  create.has_view = 1;
  create.view_format = static_cast<std::uint32_t>(view.format);
  create.view_extent = {view.width, view.height, view.depth};
  create.view_levels = {view.firstMipmapLevel, view.lastMipmapLevel};
  create.view_layers = {view.firstLayer, view.lastLayer};
}

bool FormatOf(cudaArray_t handle, ChannelFormat& format) {
  ClientArrayPtr array;
  if (FindArray(handle, array) != cudaSuccess) return false;
  format = array->format;
  return true;
}

// Finds the format of the texels; returns false for a resource without one.
bool FindFormat(const cudaResourceDesc& resource, ChannelFormat& format) {
  ClientMipmappedArrayPtr mipmapped;
  switch (resource.resType) {
    case cudaResourceTypeArray:
      return FormatOf(resource.res.array.array, format);
    case cudaResourceTypeMipmappedArray:
      if (FindMipmappedArray(resource.res.mipmap.mipmap, mipmapped) != cudaSuccess) return false;
      return FormatOf(reinterpret_cast<cudaArray_t>(mipmapped->levels.front()), format);
    case cudaResourceTypePitch2D:
      return ToChannelFormat(resource.res.pitch2D.desc, format) == cudaSuccess;
    case cudaResourceTypeLinear:  // has no filter
      return false;
  }
  return false;
}

// Whether the texture would filter between integers. Drivers do not look, NVIDIA's runtime does.
bool FiltersIntegers(const cudaResourceDesc& resource, const cudaTextureDesc& texture) {
  ChannelFormat format;
  if (texture.filterMode != cudaFilterModeLinear || !FindFormat(resource, format)) return false;
  const bool holds_floats =
      format.format == CU_AD_FORMAT_HALF || format.format == CU_AD_FORMAT_FLOAT;
  return !holds_floats && (texture.readMode == cudaReadModeElementType || format.channel_bytes > 2);
}

// Keeps the descriptions for queries. `view` may be null.
cudaError_t CreateTexture(cudaTextureObject_t* out, const cudaResourceDesc* resource,
                          const cudaTextureDesc* texture, const cudaResourceViewDesc* view) {
  if (!out || !resource || !texture) return cudaErrorInvalidValue;
  TORPOR_TRY(Begin());
  if (!view && FiltersIntegers(*resource, *texture)) return cudaErrorInvalidValue;
  wire::TextureCreate create;
  TORPOR_TRY(SetResource(*resource, create));
  SetSampling(*texture, create);
  if (view) SetView(*view, create);
  create.texture = Core().MintHandle(HandleKind::kTextureObject);
  TextureObject object{create.texture, *resource, *texture, std::nullopt};
  if (view) object.view = *view;
  return Create(TheTextures(), object, create, out);
}

// Surfaces exist over arrays only.
cudaError_t CreateSurface(cudaSurfaceObject_t* out, const cudaResourceDesc* resource) {
  if (!out || !resource || resource->resType != cudaResourceTypeArray) return cudaErrorInvalidValue;
  ClientArrayPtr array;
  TORPOR_TRY(FindArray(resource->res.array.array, array));
  const wire::SurfaceCreate create{Core().MintHandle(HandleKind::kTextureObject), array->wire,
                                   array->level};
  return Create(TheSurfaces(), {create.surface, *resource, {}, std::nullopt}, create, out);
}

// Destroying a value that is no object is a success, as in CUDA.
cudaError_t Destroy(TextureObjects& objects, std::uint64_t value) {
  TORPOR_TRY(Begin());
  const std::optional<TextureObject> object = objects.Take(value);
  return object ? DestroyObjectWire(object->wire) : cudaSuccess;
}

// Answers a query by `select(object)`. cudaErrorInvalidValue for an unknown value.
template <typename Out, typename Select>
cudaError_t Describe(TextureObjects& objects, std::uint64_t value, Out* out, const Select& select) {
  TORPOR_TRY(Begin());
  const std::optional<TextureObject> object = objects.Find(value);
  if (!out || !object) return cudaErrorInvalidValue;
  return select(*object);
}

// The hardware's limit counts texels, so all formats have the same limit.
cudaError_t LinearTextureWidth(std::size_t* width, const cudaChannelFormatDesc* description,
                               int device) {
  if (!width || !description) return cudaErrorInvalidValue;
  ChannelFormat format;
  TORPOR_TRY(ToChannelFormat(*description, format));
  int texels = 0;
  TORPOR_TRY(cudaDeviceGetAttribute(&texels, cudaDevAttrMaxTexture1DLinearWidth, device));
  *width = static_cast<std::size_t>(texels);
  return cudaSuccess;
}

}  // namespace

cudaError_t DestroyAllTextureObjects() {
  for (TextureObjects* objects : {&TheTextures(), &TheSurfaces()})
    for (const auto& [value, object] : objects->TakeAll())
      TORPOR_TRY(DestroyObjectWire(object.wire));
  return cudaSuccess;
}

}  // namespace torpor::shim

using namespace torpor::shim;  // NOLINT(google-build-using-namespace): the entries' own library

cudaError_t cudaCreateTextureObject(cudaTextureObject_t* object,
                                    const struct cudaResourceDesc* resource,
                                    const struct cudaTextureDesc* texture,
                                    const struct cudaResourceViewDesc* view) {
  return Entry([&] { return CreateTexture(object, resource, texture, view); });
}

cudaError_t cudaDestroyTextureObject(cudaTextureObject_t object) {
  return Entry([&] { return Destroy(TheTextures(), object); });
}

cudaError_t cudaGetTextureObjectResourceDesc(struct cudaResourceDesc* resource,
                                             cudaTextureObject_t object) {
  return Entry([&] {
    return Describe(TheTextures(), object, resource, [&](const TextureObject& found) {
      *resource = found.resource;
      return cudaSuccess;
    });
  });
}

cudaError_t cudaGetTextureObjectTextureDesc(struct cudaTextureDesc* texture,
                                            cudaTextureObject_t object) {
  return Entry([&] {
    return Describe(TheTextures(), object, texture, [&](const TextureObject& found) {
      *texture = found.texture;
      return cudaSuccess;
    });
  });
}

cudaError_t cudaGetTextureObjectResourceViewDesc(struct cudaResourceViewDesc* view,
                                                 cudaTextureObject_t object) {
  return Entry([&] {
    return Describe(TheTextures(), object, view, [&](const TextureObject& found) {
      if (!found.view) return cudaErrorInvalidValue;
      *view = *found.view;
      return cudaSuccess;
    });
  });
}

cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t* object,
                                    const struct cudaResourceDesc* resource) {
  return Entry([&] { return CreateSurface(object, resource); });
}

cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t object) {
  return Entry([&] { return Destroy(TheSurfaces(), object); });
}

cudaError_t cudaGetSurfaceObjectResourceDesc(struct cudaResourceDesc* resource,
                                             cudaSurfaceObject_t object) {
  return Entry([&] {
    return Describe(TheSurfaces(), object, resource, [&](const TextureObject& found) {
      *resource = found.resource;
      return cudaSuccess;
    });
  });
}

cudaError_t cudaDeviceGetTexture1DLinearMaxWidth(size_t* width,
                                                 const struct cudaChannelFormatDesc* description,
                                                 int device) {
  return Entry([&] { return LinearTextureWidth(width, description, device); });
}
