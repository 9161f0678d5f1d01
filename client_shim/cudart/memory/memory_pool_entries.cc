#include <utility>

#include "client_shim/cudart/call/entry.h"
#include "client_shim/cudart/graph/memory_work.h"
#include "client_shim/cudart/memory/memory_pools.h"
#include "client_shim/cudart/stream/streams.h"
#include "client_shim/cudart/stream/submit.h"

// The entries about memory pools. Pools of host and managed memory are not supported.
namespace torpor::shim {
namespace {

bool Exists(int device) { return Core().OfDevice(device) != nullptr; }

// Turns to a device and opens its session.
cudaError_t UsePoolsOf(int device) {
  TORPOR_TRY(Begin());
  if (!Exists(device)) return cudaErrorInvalidDevice;
  UseDevice(device);
  return Core().Start();
}

bool IsDevice(const cudaMemLocation& location) {
  return location.type == cudaMemLocationTypeDevice;
}

// Turns to the device of a pool of the given kind.
cudaError_t UseKind(const cudaMemLocation& location, cudaMemAllocationType type) {
  TORPOR_TRY(Begin());
  if (IsDevice(location) && type == cudaMemAllocationTypePinned) return UsePoolsOf(location.id);
  Core().WarnOnce("pool kind", "memory pools of host or managed memory are not supported");
  return cudaErrorNotSupported;
}

// Pools cannot be exported to other processes.
cudaError_t Create(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
  if (!pool || !properties) return cudaErrorInvalidValue;
  TORPOR_TRY(UseKind(properties->location, properties->allocType));
  if (properties->handleTypes != cudaMemHandleTypeNone) {
    Core().WarnOnce("pool handles", "memory pools cannot be exported to other processes");
    return cudaErrorNotSupported;
  }
  return CreatePool(properties->maxSize, *pool);
}

// Only checks: every device can always read and write all reachable memory.
cudaError_t SetAccess(cudaMemPool_t pool, const cudaMemAccessDesc* descriptions,
                      std::size_t count) {
  TORPOR_TRY(CheckPool(pool));
  if (!descriptions && count > 0) return cudaErrorInvalidValue;
  for (std::size_t i = 0; i < count; ++i) {
    const cudaMemAccessDesc& wanted = descriptions[i];
    if (!IsDevice(wanted.location)) return cudaErrorInvalidValue;
    if (!Exists(wanted.location.id)) return cudaErrorInvalidDevice;
    const bool is_known = wanted.flags == cudaMemAccessFlagsProtReadWrite ||
                          wanted.flags == cudaMemAccessFlagsProtRead ||
                          wanted.flags == cudaMemAccessFlagsProtNone;
    if (!is_known) return cudaErrorInvalidValue;
  }
  return cudaSuccess;
}

// Devices read and write; the host has no access.
cudaError_t GetAccess(cudaMemAccessFlags* flags, cudaMemPool_t pool,
                      const cudaMemLocation* location) {
  if (!flags || !location) return cudaErrorInvalidValue;
  TORPOR_TRY(CheckPool(pool));
  if (IsDevice(*location) && !Exists(location->id)) return cudaErrorInvalidDevice;
  *flags = IsDevice(*location) ? cudaMemAccessFlagsProtReadWrite : cudaMemAccessFlagsProtNone;
  return cudaSuccess;
}

// An allocation in stream order from `pool`, or, if null, from the current pool of the stream's
// device. Captured, the allocation is memory of the graph.
struct AllocationInOrder {
  cudaMemPool_t pool = nullptr;
  std::uint64_t bytes = 0;
  void** out = nullptr;

  cudaError_t MakeNode(NodeWork& node) const {
    if (!out || bytes == 0) return cudaErrorInvalidValue;
    cudaMemAllocNodeParams parameters{};
    parameters.poolProps.allocType = cudaMemAllocationTypePinned;
    parameters.poolProps.location.type = cudaMemLocationTypeDevice;
    parameters.poolProps.location.id = DeviceInUse();
    parameters.bytesize = bytes;
    TORPOR_TRY(MakeAllocationWork(parameters, node));
    *out = parameters.dptr;
    return cudaSuccess;
  }
  cudaError_t Send(cudaStream_t stream) const {
    if (pool) return AllocateFromPool(pool, bytes, stream, out);
    ClientStreamPtr used;
    TORPOR_TRY(FindStream(stream, used));  // turns to the stream's device
    return AllocateFromPool(CurrentPool(), bytes, stream, out);
  }
};

}  // namespace
}  // namespace torpor::shim

using namespace torpor::shim;  // NOLINT(google-build-using-namespace): the entries' own library

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  return Entry([&]() -> cudaError_t {
    if (!pool) return cudaErrorInvalidValue;
    TORPOR_TRY(UsePoolsOf(device));
    *pool = DefaultPool();
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
  return Entry([&]() -> cudaError_t {
    if (!pool) return cudaErrorInvalidValue;
    TORPOR_TRY(UsePoolsOf(device));
    *pool = CurrentPool();
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
  return Entry([&]() -> cudaError_t {
    TORPOR_TRY(UsePoolsOf(device));
    return SetCurrentPool(pool);
  });
}

cudaError_t cudaMemGetDefaultMemPool(cudaMemPool_t* pool, struct cudaMemLocation* location,
                                     enum cudaMemAllocationType type) {
  return Entry([&]() -> cudaError_t {
    if (!pool || !location) return cudaErrorInvalidValue;
    TORPOR_TRY(UseKind(*location, type));
    *pool = DefaultPool();
    return cudaSuccess;
  });
}

cudaError_t cudaMemGetMemPool(cudaMemPool_t* pool, struct cudaMemLocation* location,
                              enum cudaMemAllocationType type) {
  return Entry([&]() -> cudaError_t {
    if (!pool || !location) return cudaErrorInvalidValue;
    TORPOR_TRY(UseKind(*location, type));
    *pool = CurrentPool();
    return cudaSuccess;
  });
}

cudaError_t cudaMemSetMemPool(struct cudaMemLocation* location, enum cudaMemAllocationType type,
                              cudaMemPool_t pool) {
  return Entry([&]() -> cudaError_t {
    if (!location) return cudaErrorInvalidValue;
    TORPOR_TRY(UseKind(*location, type));
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
    return Submit(stream, AllocationInOrder{nullptr, bytes, pointer});
  });
}

cudaError_t cudaMallocFromPoolAsync(void** pointer, size_t bytes, cudaMemPool_t pool,
                                    cudaStream_t stream) {
  return Entry([&]() -> cudaError_t {
    TORPOR_TRY(CheckPool(pool));
    return Submit(stream, AllocationInOrder{pool, bytes, pointer});
  });
}
