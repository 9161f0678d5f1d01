#include "client_shim/cudart/texture/arrays.h"

#include <algorithm>
#include <bit>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <utility>

#include "client_shim/cudart/call/entry.h"
#include "client_shim/cudart/stream/free_unused.h"

namespace torpor::shim {
namespace {

constexpr unsigned kFaces = 6;
// More texels than any GPU allows along an edge; products of three edges fit in 64 bits.
constexpr std::size_t kMaxTexelsOfEdge = std::size_t{1} << 18;

// The live objects of a kind, by handle. Thread-safe.
template <typename T>
class Handles {
 public:
  void Insert(std::uint64_t handle, std::shared_ptr<const T> object) {
    std::unique_lock lock(mutex_);
    objects_[handle] = std::move(object);
  }
  // Removes and returns the object; null if another thread was faster.
  std::shared_ptr<const T> Take(std::uint64_t handle) {
    std::unique_lock lock(mutex_);
    const auto found = objects_.find(handle);
    if (found == objects_.end()) return nullptr;
    std::shared_ptr<const T> object = std::move(found->second);
    objects_.erase(found);
    return object;
  }
  std::shared_ptr<const T> Find(std::uint64_t handle) {
    std::shared_lock lock(mutex_);
    const auto found = objects_.find(handle);
    return found == objects_.end() ? nullptr : found->second;
  }
  std::vector<std::shared_ptr<const T>> TakeAllOf(int device) {
    std::unique_lock lock(mutex_);
    std::vector<std::shared_ptr<const T>> taken;
    std::erase_if(objects_, [&](const auto& entry) {
      if (entry.second->device != device) return false;
      taken.push_back(entry.second);
      return true;
    });
    return taken;
  }

 private:
  std::shared_mutex mutex_;
  std::unordered_map<std::uint64_t, std::shared_ptr<const T>> objects_;
};

Handles<ClientArray>& TheArrays() {
  static auto* const arrays = new Handles<ClientArray>();
  return *arrays;
}

Handles<ClientMipmappedArray>& TheMipmappedArrays() {
  static auto* const arrays = new Handles<ClientMipmappedArray>();
  return *arrays;
}

// Whether levels of a mipmapped array halve the depth: layers and faces stay.
bool HasSlicesThatShrink(unsigned flags) {
  return (flags & (cudaArrayLayered | cudaArrayCubemap)) == 0;
}

// Warns and returns cudaErrorNotSupported for sparse arrays and deferred mapping.
cudaError_t CheckFlags(unsigned flags) {
  constexpr unsigned kKnown =
      cudaArrayLayered | cudaArraySurfaceLoadStore | cudaArrayCubemap | cudaArrayTextureGather;
  if ((flags & ~kKnown) == 0) return cudaSuccess;
  Core().WarnOnce("array flags",
                  "sparse arrays and arrays with deferred mapping are not supported");
  return cudaErrorNotSupported;
}

// CUDA's rules for extents. A depth of 0 makes an array of one or two dimensions.
bool HasLegalExtent(const cudaExtent& extent, unsigned flags) {
  const bool is_sane = extent.width > 0 && extent.width <= kMaxTexelsOfEdge &&
                       extent.height <= kMaxTexelsOfEdge && extent.depth <= kMaxTexelsOfEdge;
  if (!is_sane) return false;
  const bool is_layered = (flags & cudaArrayLayered) != 0;
  if ((flags & cudaArrayCubemap) != 0)
    return extent.width == extent.height &&
           (is_layered ? extent.depth > 0 && extent.depth % kFaces == 0 : extent.depth == kFaces);
  return is_layered ? extent.depth > 0 : extent.depth == 0 || extent.height > 0;
}

// The checked request for a plain or mipmapped array.
struct Wanted {
  cudaChannelFormatDesc description{};
  ChannelFormat format;
  cudaExtent extent{};
  unsigned flags = 0;
  std::uint32_t levels = 0;  // 0 for a plain array
};

// Checks the arguments of an allocation and collects them in `wanted`.
cudaError_t Check(const cudaChannelFormatDesc* description, const cudaExtent& extent,
                  unsigned flags, Wanted& wanted) {
  if (!description) return cudaErrorInvalidValue;
  TORPOR_TRY(CheckFlags(flags));
  TORPOR_TRY(ToChannelFormat(*description, wanted.format));
  wanted.description = *description;
  wanted.extent = extent;
  wanted.flags = flags;
  return HasLegalExtent(extent, flags) ? cudaSuccess : cudaErrorInvalidValue;
}

// Describes a level; level 0 is the whole of a plain array.
ClientArray LevelOf(const Wanted& wanted, std::uint32_t level) {
  const auto halved = [&](std::size_t extent) {
    return extent == 0 ? 0 : std::max<std::size_t>(extent >> level, 1);
  };
  ClientArray array;
  array.device = DeviceInUse();
  array.level = level;
  array.description = wanted.description;
  array.format = wanted.format;
  array.extent = {
      halved(wanted.extent.width), halved(wanted.extent.height),
      HasSlicesThatShrink(wanted.flags) ? halved(wanted.extent.depth) : wanted.extent.depth};
  array.flags = wanted.flags;
  return array;
}

cudaError_t DestroyArrayWire(std::uint64_t wire) {
  return Core().Destroy(wire, Encode(wire::ArrayDestroy{wire}));
}

// Creates the array on the GPU and waits, so that a program learns of missing memory now.
cudaError_t CreateWire(const Wanted& wanted, std::uint64_t bytes, std::uint64_t& wire,
                       std::uint64_t& block) {
  TORPOR_TRY(Core().Malloc(bytes, block));
  wire = Core().MintHandle(HandleKind::kArray);
  wire::ArrayCreate create;
  create.array = wire;
  create.width = wanted.extent.width;
  create.height = wanted.extent.height;
  create.depth = wanted.extent.depth;
  create.format = wanted.format.format;
  create.channels = wanted.format.channels;
  create.flags = wanted.flags;
  create.levels = wanted.levels;
  create.block = block;
  cudaError_t error = Core().Create(wire, Encode(create));
  if (error == cudaSuccess) {
    error = Ask(wire::ArrayCheck{wire});
    if (error != cudaSuccess) DestroyArrayWire(wire);
  }
  if (error != cudaSuccess) Core().Free(block);
  return error;
}

// cudaMallocArray and cudaMalloc3DArray.
cudaError_t AllocateArray(cudaArray_t* out, const cudaChannelFormatDesc* description,
                          const cudaExtent& extent, unsigned flags) {
  if (!out) return cudaErrorInvalidValue;
  TORPOR_TRY(Begin());
  Wanted wanted;
  TORPOR_TRY(Check(description, extent, flags, wanted));
  ClientArray array = LevelOf(wanted, 0);
  TORPOR_TRY(CreateWire(wanted, array.bytes(), array.wire, array.block));
  const std::uint64_t handle = array.wire;
  TheArrays().Insert(handle, std::make_shared<const ClientArray>(array));
  *out = reinterpret_cast<cudaArray_t>(handle);
  return cudaSuccess;
}

// Clamps the number of levels to the longest edge's, as CUDA does. All levels share a wire name and
// a block; each level has a handle of its own.
cudaError_t AllocateMipmapped(cudaMipmappedArray_t* out, const cudaChannelFormatDesc* description,
                              const cudaExtent& extent, unsigned levels, unsigned flags) {
  if (!out) return cudaErrorInvalidValue;
  TORPOR_TRY(Begin());
  Wanted wanted;
  TORPOR_TRY(Check(description, extent, flags, wanted));
  const std::size_t longest = std::max(
      {extent.width, extent.height, HasSlicesThatShrink(flags) ? extent.depth : std::size_t{0}});
  wanted.levels = std::clamp(levels, 1U, static_cast<unsigned>(std::bit_width(longest)));
  std::vector<ClientArray> arrays;
  std::uint64_t bytes = 0;
  for (std::uint32_t i = 0; i < wanted.levels; ++i)
    bytes += arrays.emplace_back(LevelOf(wanted, i)).bytes();
  auto mipmapped = std::make_shared<ClientMipmappedArray>();
  mipmapped->device = DeviceInUse();
  TORPOR_TRY(CreateWire(wanted, bytes, mipmapped->wire, mipmapped->block));
  for (ClientArray& array : arrays) {
    array.wire = mipmapped->wire;
    array.is_level = true;
    mipmapped->levels.push_back(Core().MintHandle(HandleKind::kArray));
    TheArrays().Insert(mipmapped->levels.back(), std::make_shared<const ClientArray>(array));
  }
  TheMipmappedArrays().Insert(mipmapped->wire, mipmapped);
  *out = reinterpret_cast<cudaMipmappedArray_t>(mipmapped->wire);
  return cudaSuccess;
}

// Destroys the array at the executor before freeing the block that the array names.
cudaError_t FreeWire(std::uint64_t wire, std::uint64_t block) {
  const cudaError_t destroyed = DestroyArrayWire(wire);
  const cudaError_t freed = Core().Free(block);
  return destroyed != cudaSuccess ? destroyed : freed;
}

// Waits for all devices: kernels may still read the array through a texture.
cudaError_t ReleaseArray(cudaArray_t handle) {
  TORPOR_TRY(Begin());
  if (!handle) return cudaSuccess;
  ClientArrayPtr array;
  TORPOR_TRY(FindArray(handle, array));
  if (array->is_level) return cudaErrorInvalidValue;  // freed with the mipmapped array
  UseDevice(array->device);
  return FreeUnused([&] {
    return TheArrays().Take(Address(handle)) ? FreeWire(array->wire, array->block)
                                             : cudaErrorInvalidResourceHandle;
  });
}

// The handles of all levels become invalid.
cudaError_t ReleaseMipmapped(cudaMipmappedArray_t handle) {
  TORPOR_TRY(Begin());
  if (!handle) return cudaSuccess;
  ClientMipmappedArrayPtr mipmapped;
  TORPOR_TRY(FindMipmappedArray(handle, mipmapped));
  UseDevice(mipmapped->device);
  return FreeUnused([&] {
    if (!TheMipmappedArrays().Take(Address(handle))) return cudaErrorInvalidResourceHandle;
    for (const std::uint64_t level : mipmapped->levels) TheArrays().Take(level);
    return FreeWire(mipmapped->wire, mipmapped->block);
  });
}

// Returns the handle of a level; the mipmapped array keeps the handle.
cudaError_t GetLevel(cudaArray_t* out, cudaMipmappedArray_const_t handle, unsigned level) {
  if (!out) return cudaErrorInvalidValue;
  ClientMipmappedArrayPtr mipmapped;
  TORPOR_TRY(FindMipmappedArray(handle, mipmapped));
  if (level >= mipmapped->levels.size()) return cudaErrorInvalidValue;
  *out = reinterpret_cast<cudaArray_t>(mipmapped->levels[level]);
  return cudaSuccess;
}

// Each of the three results may be null.
cudaError_t GetInfo(cudaChannelFormatDesc* description, cudaExtent* extent, unsigned* flags,
                    cudaArray_const_t handle) {
  ClientArrayPtr array;
  TORPOR_TRY(FindArray(handle, array));
  if (description) *description = array->description;
  if (extent) *extent = array->extent;
  if (flags) *flags = array->flags;
  return cudaSuccess;
}

}  // namespace

cudaError_t FindArray(cudaArray_const_t handle, ClientArrayPtr& array) {
  TORPOR_TRY(Begin());
  array = TheArrays().Find(Address(handle));
  return array ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

cudaError_t FindMipmappedArray(cudaMipmappedArray_const_t handle, ClientMipmappedArrayPtr& array) {
  TORPOR_TRY(Begin());
  array = TheMipmappedArrays().Find(Address(handle));
  return array ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

cudaError_t DestroyAllArrays() {
  for (const ClientArrayPtr& array : TheArrays().TakeAllOf(DeviceInUse()))
    if (!array->is_level) TORPOR_TRY(DestroyArrayWire(array->wire));
  for (const ClientMipmappedArrayPtr& array : TheMipmappedArrays().TakeAllOf(DeviceInUse()))
    TORPOR_TRY(DestroyArrayWire(array->wire));
  return cudaSuccess;
}

}  // namespace torpor::shim

using namespace torpor::shim;  // NOLINT(google-build-using-namespace): the entries' own library

cudaError_t cudaMallocArray(cudaArray_t* array, const struct cudaChannelFormatDesc* description,
                            size_t width, size_t height, unsigned int flags) {
  return Entry([&] { return AllocateArray(array, description, {width, height, 0}, flags); });
}

cudaError_t cudaMalloc3DArray(cudaArray_t* array, const struct cudaChannelFormatDesc* description,
                              struct cudaExtent extent, unsigned int flags) {
  return Entry([&] { return AllocateArray(array, description, extent, flags); });
}

cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t* array,
                                     const struct cudaChannelFormatDesc* description,
                                     struct cudaExtent extent, unsigned int levels,
                                     unsigned int flags) {
  return Entry([&] { return AllocateMipmapped(array, description, extent, levels, flags); });
}

cudaError_t cudaFreeArray(cudaArray_t array) {
  return Entry([&] { return ReleaseArray(array); });
}

cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t array) {
  return Entry([&] { return ReleaseMipmapped(array); });
}

cudaError_t cudaGetMipmappedArrayLevel(cudaArray_t* level_array, cudaMipmappedArray_const_t array,
                                       unsigned int level) {
  return Entry([&] { return GetLevel(level_array, array, level); });
}

cudaError_t cudaArrayGetInfo(struct cudaChannelFormatDesc* description, struct cudaExtent* extent,
                             unsigned int* flags, cudaArray_t array) {
  return Entry([&] { return GetInfo(description, extent, flags, array); });
}

cudaError_t cudaGetChannelDesc(struct cudaChannelFormatDesc* description, cudaArray_const_t array) {
  return Entry([&]() -> cudaError_t {
    if (!description) return cudaErrorInvalidValue;
    return GetInfo(description, nullptr, nullptr, array);
  });
}
