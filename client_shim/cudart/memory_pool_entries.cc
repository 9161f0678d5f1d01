#include <utility>

#include "client_shim/cudart/entry.h"
#include "client_shim/cudart/graph/capture.h"
#include "client_shim/cudart/graph/make_work.h"
#include "client_shim/cudart/memory_pools.h"

// Pools of device memory; those of host and managed memory are not supported.
namespace torpor::shim {
namespace {

constexpr int kOnlyDevice = 0;

cudaError_t CheckDevice(int device) {
  TORPOR_TRY(Begin());
  return device == kOnlyDevice ? cudaSuccess : cudaErrorInvalidDevice;
}

bool IsOnDevice(const cudaMemLocation& location) {
  return location.type == cudaMemLocationTypeDevice && location.id == kOnlyDevice;
}

cudaError_t CheckKind(const cudaMemLocation& location, cudaMemAllocationType type) {
  TORPOR_TRY(Begin());
  if (location.type == cudaMemLocationTypeDevice && location.id != kOnlyDevice)
    return cudaErrorInvalidDevice;
  if (IsOnDevice(location) && type == cudaMemAllocationTypePinned) return cudaSuccess;
  Core().WarnOnce("pool kind", "memory pools of host or managed memory are not supported");
  return cudaErrorNotSupported;
}

cudaError_t Create(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
  if (!pool || !properties) return cudaErrorInvalidValue;
  TORPOR_TRY(CheckKind(properties->location, properties->allocType));
  if (properties->handleTypes != cudaMemHandleTypeNone) {
    Core().WarnOnce("pool handles", "memory pools cannot be exported to other processes");
    return cudaErrorNotSupported;
  }
  return CreatePool(properties->maxSize, *pool);
}

// The only device can always read and write.
cudaError_t SetAccess(cudaMemPool_t pool, const cudaMemAccessDesc* descriptions,
                      std::size_t count) {
  TORPOR_TRY(CheckPool(pool));
  if (!descriptions && count > 0) return cudaErrorInvalidValue;
  for (std::size_t i = 0; i < count; ++i) {
    const cudaMemAccessDesc& wanted = descriptions[i];
    if (wanted.location.type != cudaMemLocationTypeDevice) return cudaErrorInvalidValue;
    if (wanted.location.id != kOnlyDevice) return cudaErrorInvalidDevice;
    if (wanted.flags != cudaMemAccessFlagsProtReadWrite) return cudaErrorInvalidValue;
  }
  return cudaSuccess;
}

cudaError_t GetAccess(cudaMemAccessFlags* flags, cudaMemPool_t pool,
                      const cudaMemLocation* location) {
  if (!flags || !location) return cudaErrorInvalidValue;
  TORPOR_TRY(CheckPool(pool));
  if (location->type == cudaMemLocationTypeDevice && location->id != kOnlyDevice)
    return cudaErrorInvalidDevice;
  *flags = IsOnDevice(*location) ? cudaMemAccessFlagsProtReadWrite : cudaMemAccessFlagsProtNone;
  return cudaSuccess;
}

// Into the graph of a stream that captures.
cudaError_t CaptureAllocation(void** out, std::uint64_t bytes, cudaStream_t stream) {
  if (!out || bytes == 0) return cudaErrorInvalidValue;
  cudaMemAllocNodeParams parameters{};
  parameters.poolProps.allocType = cudaMemAllocationTypePinned;
  parameters.poolProps.location.type = cudaMemLocationTypeDevice;
  parameters.bytesize = bytes;
  NodeWork work;
  TORPOR_TRY(MakeAllocationWork(parameters, work));
  *out = parameters.dptr;
  return Capture(stream, std::move(work));
}

}  // namespace
}  // namespace torpor::shim

using namespace torpor::shim;  // NOLINT(google-build-using-namespace): the entries' own library

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  return Entry([&]() -> cudaError_t {
    if (!pool) return cudaErrorInvalidValue;
    TORPOR_TRY(CheckDevice(device));
    *pool = DefaultPool();
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
  return Entry([&]() -> cudaError_t {
    if (!pool) return cudaErrorInvalidValue;
    TORPOR_TRY(CheckDevice(device));
    *pool = CurrentPool();
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
  return Entry([&]() -> cudaError_t {
    TORPOR_TRY(CheckDevice(device));
    return SetCurrentPool(pool);
  });
}

cudaError_t cudaMemGetDefaultMemPool(cudaMemPool_t* pool, struct cudaMemLocation* location,
                                     enum cudaMemAllocationType type) {
  return Entry([&]() -> cudaError_t {
    if (!pool || !location) return cudaErrorInvalidValue;
    TORPOR_TRY(CheckKind(*location, type));
    *pool = DefaultPool();
    return cudaSuccess;
  });
}

cudaError_t cudaMemGetMemPool(cudaMemPool_t* pool, struct cudaMemLocation* location,
                              enum cudaMemAllocationType type) {
  return Entry([&]() -> cudaError_t {
    if (!pool || !location) return cudaErrorInvalidValue;
    TORPOR_TRY(CheckKind(*location, type));
    *pool = CurrentPool();
    return cudaSuccess;
  });
}

cudaError_t cudaMemSetMemPool(struct cudaMemLocation* location, enum cudaMemAllocationType type,
                              cudaMemPool_t pool) {
  return Entry([&]() -> cudaError_t {
    if (!location) return cudaErrorInvalidValue;
    TORPOR_TRY(CheckKind(*location, type));
    return SetCurrentPool(pool);
  });
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const struct cudaMemPoolProps* properties) {
  return Entry([&] { return Create(pool, properties); });
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  return Entry([&] { return DestroyPool(pool); });
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep) {
  return Entry([&] { return TrimPool(pool, keep); });
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute,
                                    void* value) {
  return Entry(
      [&] { return value ? SetPoolAttribute(pool, attribute, value) : cudaErrorInvalidValue; });
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute,
                                    void* value) {
  return Entry(
      [&] { return value ? GetPoolAttribute(pool, attribute, value) : cudaErrorInvalidValue; });
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const struct cudaMemAccessDesc* descriptions,
                                 size_t count) {
  return Entry([&] { return SetAccess(pool, descriptions, count); });
}

cudaError_t cudaMemPoolGetAccess(enum cudaMemAccessFlags* flags, cudaMemPool_t pool,
                                 struct cudaMemLocation* location) {
  return Entry([&] { return GetAccess(flags, pool, location); });
}

cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t stream) {
  return Entry([&]() -> cudaError_t {
    TORPOR_TRY(Begin());
    if (IsCapturing(stream)) return CaptureAllocation(pointer, bytes, stream);
    return AllocateFromPool(CurrentPool(), bytes, stream, pointer);
  });
}

cudaError_t cudaMallocFromPoolAsync(void** pointer, size_t bytes, cudaMemPool_t pool,
                                    cudaStream_t stream) {
  return Entry([&]() -> cudaError_t {
    TORPOR_TRY(CheckPool(pool));
    if (IsCapturing(stream)) return CaptureAllocation(pointer, bytes, stream);
    return AllocateFromPool(pool, bytes, stream, pointer);
  });
}
