// Device and host allocations, and attributes of addresses.
#include <algorithm>

#include "base/try.h"
#include "emulator/driver/api/api.h"
#include "emulator/driver/api/library_calls.h"
#include "emulator/driver/process/planned_faults.h"

using namespace torpor::emulator;  // NOLINT: this file only defines the C interface
using torpor::Bytes;

namespace {

constexpr Bytes kPitchAlignment = 512;

std::uint64_t Address(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }
// Whether the region is memory of the host.
bool OnHost(const Region& region) {
  return region.kind == RegionKind::kHost || region.kind == RegionKind::kRegistered;
}

// Waits first: kernels in flight may still use the memory.
CUresult FreeDeviceMemory(std::uint64_t address, Context& context) {
  const auto region = Driver::Get().space().Find(address);
  if (!region || region->begin != address ||
      (region->kind != RegionKind::kDevice && region->kind != RegionKind::kManaged)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  context.WaitAll();
  TORPOR_TRY(context.sticky());
  return Driver::Get().device(region->device)->FreeMemory(address, region->kind);
}

CostedCall CostOfPinning(DriverDevice& device, Bytes size) {
  const double ms_per_gib = device.call_costs().costs().pin_ms_per_gib;
  const double gib = static_cast<double>(size) / static_cast<double>(torpor::kGiB);
  return {device.call_costs(), ms_per_gib * 1000 * gib};
}

// Host memory counts against no device's budget.
CUresult AllocateHost(void** pointer, size_t size, unsigned flags) {
  return InContext([&](Context& context) {
    constexpr unsigned kKnown =
        CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
    if (pointer == nullptr || size == 0 || (flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
    const CostedCall cost = CostOfPinning(context.device(), size);
    const auto address = Driver::Get().space().Allocate(
        size, RegionKind::kHost, context.device().index(), context.handle(), flags);
    if (!address.ok()) return address.failure().code;
    *pointer = reinterpret_cast<void*>(*address);
    return CUDA_SUCCESS;
  });
}

// The range that the application sees: for mapped memory, the reservation.
std::pair<std::uint64_t, Bytes> RangeOf(const Region& region) {
  if (region.kind == RegionKind::kMapped) {
    if (const auto range = Driver::Get().space().FindReservation(region.begin)) return *range;
  }
  return {region.begin, region.size};
}

// Only memory of cuMemCreate can be exported.
unsigned long long AllowedHandleTypes(const Region& region) {
  return region.memory == nullptr ? 0 : region.memory->properties().requestedHandleTypes;
}

template <typename T>
void Put(void* target, T value) {
  *static_cast<T*>(target) = value;
}

// Memory without an owner belongs to the primary context of its device.
CUcontext ContextOf(const Region& region) {
  if (region.kind == RegionKind::kMapped) return nullptr;  // belongs to no context
  // Modules' variables and the pool's memory are the device's.
  return region.owner != nullptr ? region.owner
                                 : Driver::Get().primary_context(region.device).handle();
}

// Writes an attribute to `data`, whose type depends on the attribute.
CUresult PointerAttribute(void* data, CUpointer_attribute attribute, std::uint64_t address,
                          const Region& region) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      Put(data, ContextOf(region));
      break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      Put<unsigned>(data, OnHost(region) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
      break;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      Put<CUdeviceptr>(data, address);
      break;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (!OnHost(region) && region.kind != RegionKind::kManaged) return CUDA_ERROR_INVALID_VALUE;
      Put(data, reinterpret_cast<void*>(address));
      break;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      Put<unsigned>(data, 0);
      break;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      Put<unsigned long long>(data, region.id);
      break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      Put<unsigned>(data, region.kind == RegionKind::kManaged ? 1 : 0);
      break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      Put<int>(data, region.device);
      break;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      Put<unsigned>(data, 0);
      break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      Put<CUdeviceptr>(data, RangeOf(region).first);
      break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      Put<size_t>(data, RangeOf(region).second);
      break;
    case CU_POINTER_ATTRIBUTE_MAPPED:
      Put<unsigned>(data, 1);
      break;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      Put<unsigned long long>(data, AllowedHandleTypes(region));
      break;
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
      Put<unsigned>(data, 0);
      break;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      Put<unsigned>(data, region.writable   ? CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE
                          : region.readable ? CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READ
                                            : CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE);
      break;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      Put<CUmemoryPool>(data, nullptr);
      break;
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
      Put<size_t>(data, region.size);
      break;
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
      Put<CUdeviceptr>(data, region.begin);
      break;
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
      Put<unsigned long long>(data, region.id);
      break;
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
      Put<unsigned>(data, 0);
      break;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

// Bytes that an attribute's value takes; 0 for unknown attributes.
Bytes AttributeSize(CUpointer_attribute attribute) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
      return 4;
    default:
      return 8;
  }
}

}  // namespace

extern "C" {

// Free memory is what all processes of the node have left.
CUresult CUDAAPI cuMemGetInfo(size_t* free, size_t* total) {
  return InContext([&](Context& context) {
    if (free != nullptr) *free = context.device().budget().free();
    if (total != nullptr) *total = context.device().budget().total();
    return CUDA_SUCCESS;
  });
}

// The context owns the memory: cuCtxDestroy frees it.
CUresult CUDAAPI cuMemAlloc(CUdeviceptr* address, size_t size) {
  return InContext([&](Context& context) {
    if (address == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (IsAllocationToFail(context.device())) return CUDA_ERROR_OUT_OF_MEMORY;
    const auto allocated =
        context.device().AllocateMemory(size, RegionKind::kDevice, context.handle());
    if (!allocated.ok()) return allocated.failure().code;
    *address = *allocated;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuMemAllocPitch(CUdeviceptr* address, size_t* pitch, size_t width, size_t height,
                                 unsigned int element_size) {
  if (pitch == nullptr || (element_size != 4 && element_size != 8 && element_size != 16) ||
      width == 0 || height == 0 || width > SIZE_MAX - kPitchAlignment) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const Bytes row = torpor::RoundUp(width, kPitchAlignment);
  if (row > SIZE_MAX / height) return CUDA_ERROR_INVALID_VALUE;
  *pitch = row;
  return cuMemAlloc(address, row * height);
}

CUresult CUDAAPI cuMemAllocManaged(CUdeviceptr* address, size_t size, unsigned int flags) {
  return InContext([&](Context& context) {
    if (address == nullptr || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    const auto allocated =
        context.device().AllocateMemory(size, RegionKind::kManaged, context.handle(), flags);
    if (!allocated.ok()) return allocated.failure().code;
    *address = *allocated;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuMemFree(CUdeviceptr address) {
  return InContext([&](Context& context) {
    return address == 0 ? CUDA_SUCCESS : FreeDeviceMemory(address, context);
  });
}

CUresult CUDAAPI cuMemGetAddressRange(CUdeviceptr* base, size_t* size, CUdeviceptr address) {
  return InContext([&](Context&) {
    const auto region = Driver::Get().space().Find(address);
    if (!region) return CUDA_ERROR_NOT_FOUND;
    const auto [begin, bytes] = RangeOf(*region);
    if (base != nullptr) *base = begin;
    if (size != nullptr) *size = bytes;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuMemAllocHost(void** pointer, size_t size) {
  return AllocateHost(pointer, size, CU_MEMHOSTALLOC_DEVICEMAP);
}

CUresult CUDAAPI cuMemHostAlloc(void** pointer, size_t size, unsigned int flags) {
  return AllocateHost(pointer, size, flags);
}

CUresult CUDAAPI cuMemFreeHost(void* pointer) {
  return InContext([&](Context& context) {
    if (pointer == nullptr) return CUDA_SUCCESS;
    const auto region = Driver::Get().space().Find(Address(pointer));
    if (!region || region->kind != RegionKind::kHost) return CUDA_ERROR_INVALID_VALUE;
    context.WaitAll();
    const auto freed = Driver::Get().space().Free(Address(pointer), RegionKind::kHost);
    return freed.ok() ? CUDA_SUCCESS : freed.failure().code;
  });
}

// Registered memory stays where it is; kernels may access it at the same address.
CUresult CUDAAPI cuMemHostRegister(void* pointer, size_t size, unsigned int flags) {
  return InContext([&](Context& context) {
    constexpr unsigned kKnown = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
                                CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY;
    if ((flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
    const CostedCall cost = CostOfPinning(context.device(), size);
    TORPOR_TRY(Driver::Get().space().Register(Address(pointer), size, context.handle(), flags));
    const bool pins = context.device().strict().host_registrations;
    return pins ? Driver::Get().space().Populate(Address(pointer)) : CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuMemHostUnregister(void* pointer) {
  return InContext([&](Context& context) {
    context.WaitAll();
    return Driver::Get().space().Unregister(Address(pointer));
  });
}

// Host and device use the same addresses.
CUresult CUDAAPI cuMemHostGetDevicePointer(CUdeviceptr* address, void* pointer,
                                           unsigned int flags) {
  return InContext([&](Context&) {
    if (address == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    const auto region = Driver::Get().space().Find(Address(pointer));
    if (!region || !OnHost(*region)) return CUDA_ERROR_INVALID_VALUE;
    *address = Address(pointer);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuMemHostGetFlags(unsigned int* flags, void* pointer) {
  return InContext([&](Context&) {
    const auto region = Driver::Get().space().Find(Address(pointer));
    if (flags == nullptr || !region || !OnHost(*region)) return CUDA_ERROR_INVALID_VALUE;
    *flags = region->flags;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuPointerGetAttribute(void* data, CUpointer_attribute attribute,
                                       CUdeviceptr address) {
  return InContext([&](Context&) {
    if (data == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto region = Driver::Get().space().Find(address);
    if (!region) return CUDA_ERROR_INVALID_VALUE;
    return PointerAttribute(data, attribute, address, *region);
  });
}

CUresult CUDAAPI cuPointerGetAttributes(unsigned int count, CUpointer_attribute* attributes,
                                        void** data, CUdeviceptr address) {
  return InContext([&](Context&) {
    if (attributes == nullptr || data == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto region = Driver::Get().space().Find(address);
    for (unsigned i = 0; i < count; ++i) {
      if (data[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
      // An attribute that an address lacks reads as zero here, without an error.
      std::fill_n(static_cast<char*>(data[i]), AttributeSize(attributes[i]), '\0');
      if (region) {
        PointerAttribute(data[i], attributes[i], address, *region);
      } else if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) {
        *static_cast<int*>(data[i]) = CU_DEVICE_INVALID;
      }
    }
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuPointerSetAttribute(const void*, CUpointer_attribute attribute,
                                       CUdeviceptr address) {
  return InContext([&](Context&) {
    // The only settable attribute asks for the present behaviour: copies are synchronous.
    const bool known = Driver::Get().space().Find(address).has_value();
    return known && attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS ? CUDA_SUCCESS
                                                                  : CUDA_ERROR_INVALID_VALUE;
  });
}

std::size_t torporEmulatorCublasMemory() {
  if (ContextStack().empty()) return 0;
  DriverDevice& device = ContextStack().back().context->device();
  if (!device.strict().memory_overheads) return 0;
  return device.call_costs().costs().CublasMemory(device.spec().memory);
}

}  // extern "C"
