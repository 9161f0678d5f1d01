// The virtual memory calls: reservations, physical handles, mappings.
#include <optional>
#include <utility>

#include "emulator/driver/api/api.h"
#include "emulator/driver/process/planned_faults.h"

using namespace torpor::emulator;  // NOLINT: this file only defines the C interface
using torpor::Bytes;

namespace {

bool IsPowerOfTwo(Bytes value) { return value != 0 && (value & (value - 1)) == 0; }

bool ValidProperties(const CUmemAllocationProp* properties) {
  constexpr unsigned kKnownTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return properties != nullptr && properties->type == CU_MEM_ALLOCATION_TYPE_PINNED &&
         properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
         (static_cast<unsigned>(properties->requestedHandleTypes) & ~kKnownTypes) == 0;
}

// Charges the device `index` for a call that takes `us` for each of `handles`.
CostedCall CostOf(CUdevice index, double VirtualMemoryCosts::*us, std::size_t handles = 1) {
  DriverDevice* device = Driver::Get().device(index);
  CallCosts& costs = (device == nullptr ? *Driver::Get().devices().front() : *device).call_costs();
  return {costs, costs.costs().vmm.*us * static_cast<double>(handles)};
}

// As above, for calls on the mappings of a range.
CostedCall CostOf(std::uint64_t address, Bytes size, double VirtualMemoryCosts::*us) {
  AddressSpace& space = Driver::Get().space();
  const auto region = space.Find(address);
  return CostOf(region ? region->device : 0, us, space.CountMappings(address, size));
}

template <typename Body>
CUresult OnMemory(CUmemGenericAllocationHandle handle, Body&& body,
                  const char* name = __builtin_FUNCTION()) {
  return Call(
      [&](Driver& driver) -> CUresult {
        const std::shared_ptr<PhysicalMemory> memory = driver.memory().Share(handle);
        return memory == nullptr ? CUDA_ERROR_INVALID_VALUE : body(memory);
      },
      name);
}

}  // namespace

extern "C" {

// One granularity serves every device and every kind of memory.
CUresult CUDAAPI cuMemGetAllocationGranularity(size_t* granularity,
                                               const CUmemAllocationProp* properties,
                                               CUmemAllocationGranularity_flags option) {
  return Call([&](Driver& driver) {
    if (granularity == nullptr || !ValidProperties(properties) ||
        (option != CU_MEM_ALLOC_GRANULARITY_MINIMUM &&
         option != CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (driver.device(properties->location.id) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    *granularity = kGranularity;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuMemAddressReserve(CUdeviceptr* address, size_t size, size_t alignment,
                                     CUdeviceptr hint, unsigned long long flags) {
  return Call([&](Driver& driver) {
    if (address == nullptr || size == 0 || size % kGranularity != 0 || flags != 0 ||
        size > kWindowEnd - kWindowBegin || (alignment != 0 && !IsPowerOfTwo(alignment)) ||
        alignment > kWindowEnd - kWindowBegin) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    const auto hints = driver.topology().strict.addresses.value_or(AddressHints::kHonoured);
    const auto reserved = driver.space().Reserve(size, alignment, hint, hints);
    if (!reserved.ok()) return reserved.failure().code;
    *address = *reserved;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuMemAddressFree(CUdeviceptr address, size_t size) {
  return Call([&](Driver& driver) { return driver.space().FreeReservation(address, size); });
}

// The memory counts against the device of the properties, in all processes of the node.
CUresult CUDAAPI cuMemCreate(CUmemGenericAllocationHandle* handle, size_t size,
                             const CUmemAllocationProp* properties, unsigned long long flags) {
  return Call([&](Driver& driver) {
    if (handle == nullptr || size == 0 || size % kGranularity != 0 || flags != 0 ||
        !ValidProperties(properties)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    DriverDevice* device = driver.device(properties->location.id);
    if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    const CostedCall cost = CostOf(device->index(), &VirtualMemoryCosts::create_us);
    if (IsAllocationToFail(*device)) return CUDA_ERROR_OUT_OF_MEMORY;
    auto memory = PhysicalMemory::Create(size, *properties, device->spec().place, device->budget(),
                                         device->new_contents());
    if (memory == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    *handle = driver.memory().Create(std::move(memory));
    return CUDA_SUCCESS;
  });
}

// Mapped memory lives on until its last mapping ends.
CUresult CUDAAPI cuMemRelease(CUmemGenericAllocationHandle handle) {
  return Call([&](Driver& driver) {
    return driver.memory().Destroy(handle) == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
  });
}

// Only whole handles can be mapped, as with the real driver.
CUresult CUDAAPI cuMemMap(CUdeviceptr address, size_t size, size_t offset,
                          CUmemGenericAllocationHandle handle, unsigned long long flags) {
  return OnMemory(handle, [&](const std::shared_ptr<PhysicalMemory>& memory) {
    if (offset != 0 || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    const CostedCall cost = CostOf(memory->properties().location.id, &VirtualMemoryCosts::map_us);
    return Driver::Get().space().Map(address, size, memory);
  });
}

CUresult CUDAAPI cuMemUnmap(CUdeviceptr address, size_t size) {
  return Call([&](Driver& driver) {
    const CostedCall cost = CostOf(address, size, &VirtualMemoryCosts::unmap_us);
    return driver.space().Unmap(address, size);
  });
}

// Access of devices only; the host has whatever access any device has.
CUresult CUDAAPI cuMemSetAccess(CUdeviceptr address, size_t size,
                                const CUmemAccessDesc* descriptions, size_t count) {
  return Call([&](Driver& driver) {
    if (descriptions == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
    const CostedCall cost = CostOf(address, size, &VirtualMemoryCosts::set_access_us);
    for (size_t i = 0; i < count; ++i) {
      const CUmemAccessDesc& description = descriptions[i];
      if (description.location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
        return CUDA_ERROR_NOT_SUPPORTED;
      }
      if (driver.device(description.location.id) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
      const CUresult result =
          driver.space().SetAccess(address, size, description.location.id, description.flags);
      if (result != CUDA_SUCCESS) return result;
    }
    return CUDA_SUCCESS;
  });
}

// Tells the access that cuMemSetAccess granted, which may be less than the actual access.
CUresult CUDAAPI cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location,
                                CUdeviceptr address) {
  return Call([&](Driver& driver) {
    const auto region = driver.space().Find(address);
    if (flags == nullptr || location == nullptr || !region || region->kind != RegionKind::kMapped) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    const auto granted = region->access.find(location->id);
    *flags = granted == region->access.end() ? 0ULL : granted->second;
    return CUDA_SUCCESS;
  });
}

// Exports a file descriptor, the only type of handle that the emulator shares.
CUresult CUDAAPI cuMemExportToShareableHandle(void* target, CUmemGenericAllocationHandle handle,
                                              CUmemAllocationHandleType type,
                                              unsigned long long flags) {
  return OnMemory(handle, [&](const std::shared_ptr<PhysicalMemory>& memory) {
    const auto allowed = memory->properties().requestedHandleTypes;
    if (target == nullptr || flags != 0 || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
        (allowed & type) == 0) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (Driver::Get().topology().faults.refuses_exports) return CUDA_ERROR_NOT_PERMITTED;
    const CostedCall cost =
        CostOf(memory->properties().location.id, &VirtualMemoryCosts::export_us);
    const int fd = memory->Export();
    if (fd < 0) return CUDA_ERROR_OPERATING_SYSTEM;
    *static_cast<int*>(target) = fd;
    return CUDA_SUCCESS;
  });
}

// The caller keeps its descriptor. Fails for memory of a GPU that this process does not see.
CUresult CUDAAPI cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* source,
                                                CUmemAllocationHandleType type) {
  return Call([&](Driver& driver) {
    if (handle == nullptr || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    const int fd = static_cast<int>(reinterpret_cast<std::intptr_t>(source));
    auto memory = PhysicalMemory::Import(fd, [&](unsigned place) -> std::optional<CUdevice> {
      const DriverDevice* device = driver.DeviceAt(place);
      if (device == nullptr) return std::nullopt;
      return device->index();
    });
    if (memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const CostedCall cost =
        CostOf(memory->properties().location.id, &VirtualMemoryCosts::import_us);
    *handle = driver.memory().Create(std::move(memory));
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* properties,
                                                        CUmemGenericAllocationHandle handle) {
  return OnMemory(handle, [&](const std::shared_ptr<PhysicalMemory>& memory) {
    if (properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *properties = memory->properties();
    return CUDA_SUCCESS;
  });
}

// Makes another handle, which keeps the memory until cuMemRelease.
CUresult CUDAAPI cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
  return Call([&](Driver& driver) {
    const auto region = driver.space().Find(reinterpret_cast<std::uint64_t>(address));
    if (handle == nullptr || !region || region->memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *handle = driver.memory().Create(region->memory);
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
