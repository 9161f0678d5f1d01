#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <utility>

#include "base/units.h"
#include "client_shim/cudart/call/entry.h"
#include "client_shim/cudart/graph/graph_memory.h"
#include "client_shim/cudart/graph/memory_work.h"
#include "client_shim/cudart/managed/managed_ranges.h"
#include "client_shim/cudart/memory/host_register.h"
#include "client_shim/cudart/memory/memory_pools.h"
#include "client_shim/cudart/memory/places.h"
#include "client_shim/cudart/stream/capture.h"
#include "client_shim/cudart/stream/free_unused.h"
#include "client_shim/cudart/stream/submit.h"

namespace torpor::shim {
namespace {

// CUDA's padding of rows on every GPU of the last ten years, in bytes.
constexpr std::uint64_t kPitchAlignment = 512;

// Flags of pinned allocations by address, for cudaHostGetFlags. Thread-safe.
class HostFlags {
 public:
  void Set(std::uint64_t address, unsigned flags) {
    std::unique_lock lock(mutex_);
    flags_[address] = flags;
  }
  void Erase(std::uint64_t address) {
    std::unique_lock lock(mutex_);
    flags_.erase(address);
  }
  unsigned Get(std::uint64_t address) {
    std::shared_lock lock(mutex_);
    const auto found = flags_.find(address);
    return found == flags_.end() ? unsigned{cudaHostAllocDefault} : found->second;
  }

 private:
  std::shared_mutex mutex_;
  std::unordered_map<std::uint64_t, unsigned> flags_;
};

HostFlags& TheHostFlags() {
  static auto* const flags = new HostFlags();
  return *flags;
}

// cudaMalloc. Takes unused memory back from the pools if the session lacks room.
cudaError_t Allocate(void** out, std::uint64_t bytes) {
  if (!out) return cudaErrorInvalidValue;
  TORPOR_TRY(Begin());
  TORPOR_TRY(RefuseUnsafe());
  *out = nullptr;
  if (bytes == 0) return cudaSuccess;
  std::uint64_t address = 0;
  cudaError_t error = Core().Malloc(bytes, address);
  if (error == cudaErrorMemoryAllocation && ReleaseAllPoolMemory())
    error = Core().Malloc(bytes, address);
  TORPOR_TRY(error);
  *out = reinterpret_cast<void*>(address);
  return cudaSuccess;
}

// Frees managed memory that no work uses any more.
cudaError_t ReleaseManaged(std::uint64_t address) {
  return TheManagedRanges().Remove(address) ? Core().HostFree(address) : cudaErrorInvalidValue;
}

// cudaFree of any kind of device memory: of a graph, managed, of a pool, or plain.
cudaError_t Release(void* pointer) {
  TORPOR_TRY(Begin());
  if (!pointer) return cudaSuccess;
  cudaError_t freed = cudaSuccess;
  if (FreeGraphMemory(Address(pointer), freed)) return freed;
  std::uint64_t bytes = 0;
  if (TheManagedRanges().BeginsAt(Address(pointer), bytes))
    return FreeUnused([&] { return ReleaseManaged(Address(pointer)); });
  ClientCore::Allocation allocation;
  if (!Core().FindAllocation(Address(pointer), allocation)) return cudaErrorInvalidValue;
  UseDevice(allocation.device);
  if (FindInPools(allocation, Address(pointer), bytes))
    return FreeUnused([&] { return FreeUnusedToPool(pointer); });
  const bool is_own = allocation.on_device && !allocation.is_foreign;
  if (!is_own || allocation.begin != Address(pointer)) return cudaErrorInvalidValue;
  return FreeUnused([&] { return Core().Free(Address(pointer)); });
}

// cudaFreeAsync. Only a pool's memory is freed in stream order; other memory as by cudaFree.
cudaError_t ReleaseInOrder(void* pointer, cudaStream_t stream) {
  TORPOR_TRY(Begin());
  std::uint64_t room = 0;
  ClientCore::Allocation allocation;
  const bool is_pooled = Core().FindAllocation(Address(pointer), allocation) &&
                         FindInPools(allocation, Address(pointer), room);
  return is_pooled ? FreeToPool(pointer, stream) : Release(pointer);
}

struct FreeInOrderWork {
  void* pointer = nullptr;

  cudaError_t MakeNode(NodeWork& node) const { return MakeFreeWork(pointer, node); }
  cudaError_t Send(cudaStream_t stream) const { return ReleaseInOrder(pointer, stream); }
};

// cudaMallocPitch: rounds rows up to kPitchAlignment.
cudaError_t AllocatePitched(void** out, std::size_t* pitch, std::size_t width, std::size_t height) {
  if (!pitch || width > ~std::uint64_t{0} - kPitchAlignment) return cudaErrorInvalidValue;
  const std::uint64_t row = RoundUp(width, kPitchAlignment);
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(row, height, &bytes)) return cudaErrorMemoryAllocation;
  TORPOR_TRY(Allocate(out, bytes));
  *pitch = row;
  return cudaSuccess;
}

// cudaHostAlloc: memory of the host arena. All known flags are granted.
cudaError_t AllocateHost(void** out, std::uint64_t bytes, unsigned flags) {
  constexpr unsigned kKnown =
      cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined;
  if (!out || (flags & ~kKnown) != 0) return cudaErrorInvalidValue;
  TORPOR_TRY(Begin());
  TORPOR_TRY(RefuseUnsafe());
  *out = nullptr;
  if (bytes == 0) return cudaSuccess;
  std::uint64_t address = 0;
  TORPOR_TRY(Core().HostAlloc(bytes, address));
  // With unified addressing all pinned memory is portable and mapped.
  TheHostFlags().Set(address, flags | cudaHostAllocMapped);
  *out = reinterpret_cast<void*>(address);
  return cudaSuccess;
}

// cudaFreeHost. Refuses managed memory.
cudaError_t ReleaseHost(void* pointer) {
  TORPOR_TRY(Begin());
  if (!pointer) return cudaSuccess;
  if (IsManaged(pointer)) return cudaErrorInvalidValue;
  return FreeUnused([&]() -> cudaError_t {
    TORPOR_TRY(Core().HostFree(Address(pointer)));
    TheHostFlags().Erase(Address(pointer));
    return cudaSuccess;
  });
}

// Finds the allocation of pinned, not managed, memory.
cudaError_t FindPinned(const void* pointer, ClientCore::Allocation& allocation) {
  TORPOR_TRY(Begin());
  const bool found = Core().FindAllocation(Address(pointer), allocation);
  return found && !allocation.on_device && !IsManaged(pointer) ? cudaSuccess
                                                               : cudaErrorInvalidValue;
}

// cudaPointerGetAttributes, from the client's tables alone.
cudaError_t DescribePointer(cudaPointerAttributes* attributes, const void* pointer) {
  if (!attributes) return cudaErrorInvalidValue;
  TORPOR_TRY(Begin());
  *attributes = {};
  const Place place = PlaceOf(pointer);
  auto* const address = const_cast<void*>(pointer);
  attributes->device = cudaInvalidDeviceId;
  attributes->hostPointer = address;
  if (place.is_wild || place.side == Side::kPageable) {
    const bool is_registered = IsRegistered(pointer);
    attributes->type = is_registered ? cudaMemoryTypeHost : cudaMemoryTypeUnregistered;
    if (is_registered) attributes->device = DeviceInUse();
    if (const void* const alias = ArenaAlias(pointer); alias != pointer)
      attributes->devicePointer = const_cast<void*>(alias);
    return cudaSuccess;
  }
  const bool on_device = place.side == Side::kDevice;
  const cudaMemoryType host_type = IsManaged(pointer) ? cudaMemoryTypeManaged : cudaMemoryTypeHost;
  attributes->device = place.device;
  attributes->type = on_device ? cudaMemoryTypeDevice : host_type;
  attributes->devicePointer = address;
  if (on_device) attributes->hostPointer = nullptr;
  return cudaSuccess;
}

}  // namespace
}  // namespace torpor::shim

using namespace torpor::shim;  // NOLINT(google-build-using-namespace): the entries' own library

cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  return Entry([&] { return Allocate(pointer, bytes); });
}

cudaError_t cudaFree(void* pointer) {
  return Entry([&] { return Release(pointer); });
}

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  return Entry([&] { return Submit(stream, FreeInOrderWork{pointer}); });
}

cudaError_t cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  return Entry([&] { return AllocatePitched(pointer, pitch, width, height); });
}

// A volume is a tall pitched allocation: all rows of all slices.
cudaError_t cudaMalloc3D(struct cudaPitchedPtr* pointer, struct cudaExtent extent) {
  return Entry([&]() -> cudaError_t {
    std::size_t rows = 0;
    if (!pointer || __builtin_mul_overflow(extent.height, extent.depth, &rows))
      return cudaErrorInvalidValue;
    TORPOR_TRY(AllocatePitched(&pointer->ptr, &pointer->pitch, extent.width, rows));
    pointer->xsize = extent.width;
    pointer->ysize = extent.height;
    return cudaSuccess;
  });
}

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  return Entry([&]() -> cudaError_t {
    if (!free_bytes || !total_bytes) return cudaErrorInvalidValue;
    TORPOR_TRY(Begin());
    return Core().MemGetInfo(*free_bytes, *total_bytes);
  });
}

cudaError_t cudaMallocHost(void** pointer, size_t bytes) {
  return Entry([&] { return AllocateHost(pointer, bytes, cudaHostAllocDefault); });
}

cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned int flags) {
  return Entry([&] { return AllocateHost(pointer, bytes, flags); });
}

cudaError_t cudaFreeHost(void* pointer) {
  return Entry([&] { return ReleaseHost(pointer); });
}

cudaError_t cudaHostGetDevicePointer(void** device_pointer, void* pointer, unsigned int flags) {
  return Entry([&]() -> cudaError_t {
    if (!device_pointer || flags != 0) return cudaErrorInvalidValue;
    ClientCore::Allocation allocation;
    if (IsRegistered(pointer)) return ExposeRegistered(pointer, *device_pointer);
    TORPOR_TRY(FindPinned(pointer, allocation));
    *device_pointer = pointer;  // the arena has the same address in every process
    return cudaSuccess;
  });
}

cudaError_t cudaHostGetFlags(unsigned int* flags, void* pointer) {
  return Entry([&]() -> cudaError_t {
    if (!flags) return cudaErrorInvalidValue;
    if (FindRegistered(pointer, *flags)) return cudaSuccess;
    ClientCore::Allocation allocation;
    TORPOR_TRY(FindPinned(pointer, allocation));
    *flags = TheHostFlags().Get(allocation.begin);
    return cudaSuccess;
  });
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes* attributes,
                                     const void* pointer) {
  return Entry([&] { return DescribePointer(attributes, pointer); });
}
