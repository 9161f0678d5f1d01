#include "client_shim/cuda/virtual_memory.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <mutex>

#include "client_shim/cuda/devices.h"
#include "client_shim/cuda/entry.h"

namespace torpor::shim {
namespace {

// Granularity of reservations and of physical memory in bytes.
constexpr std::size_t kGranularity = std::size_t{2} << 20;

// Reserved addresses, which are an allocation of the runtime from the start.
struct Reservation {
  std::size_t bytes = 0;
  CUdevice device = 0;
  void* allocation = nullptr;  // may begin earlier, for the alignment
};

// A handle of cuMemCreate. Has no memory of its own: the memory is the reservation's, at the
// address of the first mapping.
struct Physical {
  std::size_t bytes = 0;
  CUdeviceptr mapped_at = 0;  // 0: never
  bool is_mapped = false;
  bool is_released = false;
};

struct Mapping {
  std::size_t bytes = 0;
  CUmemGenericAllocationHandle handle = 0;
};

// The reservations, handles and mappings of the process. Thread-safe.
class VirtualMemory {
 public:
  void Reserve(CUdeviceptr address, const Reservation& reservation) {
    std::lock_guard lock(mutex_);
    reservations_[address] = reservation;
  }
  // Ends the reservation and returns the allocation that the caller frees.
  CUresult Unreserve(CUdeviceptr address, std::size_t bytes, void*& allocation) {
    std::lock_guard lock(mutex_);
    const auto found = reservations_.find(address);
    if (found == reservations_.end() || found->second.bytes != bytes)
      return CUDA_ERROR_INVALID_VALUE;
    const auto mapping = mappings_.lower_bound(address);
    if (mapping != mappings_.end() && mapping->first < address + bytes)
      return CUDA_ERROR_INVALID_VALUE;
    allocation = found->second.allocation;
    reservations_.erase(found);
    return CUDA_SUCCESS;
  }

  CUmemGenericAllocationHandle Create(std::size_t bytes) {
    std::lock_guard lock(mutex_);
    physical_[++minted_].bytes = bytes;
    return minted_;
  }
  CUresult Release(CUmemGenericAllocationHandle handle) {
    std::lock_guard lock(mutex_);
    const auto found = physical_.find(handle);
    if (found == physical_.end() || found->second.is_released) return CUDA_ERROR_INVALID_VALUE;
    found->second.is_released = true;
    ForgetUnused(found);
    return CUDA_SUCCESS;
  }

  CUresult Map(CUdeviceptr address, std::size_t bytes, CUmemGenericAllocationHandle handle) {
    std::lock_guard lock(mutex_);
    const auto found = physical_.find(handle);
    if (found == physical_.end() || found->second.is_released || found->second.bytes != bytes)
      return CUDA_ERROR_INVALID_VALUE;
    Physical& physical = found->second;
    if (!IsReserved(address, bytes) || Overlaps(address, bytes)) return CUDA_ERROR_INVALID_VALUE;
    if (physical.is_mapped || (physical.mapped_at != 0 && physical.mapped_at != address))
      return Refuse("cuMemMap of the same memory at two addresses");
    physical.is_mapped = true;
    physical.mapped_at = address;
    mappings_[address] = {bytes, handle};
    return CUDA_SUCCESS;
  }
  CUresult Unmap(CUdeviceptr address, std::size_t bytes) {
    std::lock_guard lock(mutex_);
    if (!IsMapped(address, bytes)) return CUDA_ERROR_INVALID_VALUE;
    const auto first = mappings_.find(address);
    const auto last = mappings_.lower_bound(address + bytes);
    for (auto mapping = first; mapping != last; ++mapping) {
      const auto physical = physical_.find(mapping->second.handle);
      physical->second.is_mapped = false;
      ForgetUnused(physical);
    }
    mappings_.erase(first, last);
    return CUDA_SUCCESS;
  }
  // Whether a sequence of whole mappings covers exactly the range.
  bool Covers(CUdeviceptr address, std::size_t bytes) {
    std::lock_guard lock(mutex_);
    return IsMapped(address, bytes);
  }
  bool Contains(CUdeviceptr address) {
    std::lock_guard lock(mutex_);
    const auto after = mappings_.upper_bound(address);
    if (after == mappings_.begin()) return false;
    const auto& [begin, mapping] = *std::prev(after);
    return address - begin < mapping.bytes;
  }

  bool HasReservations(CUdevice device) {
    std::lock_guard lock(mutex_);
    return std::any_of(reservations_.begin(), reservations_.end(),
                       [&](const auto& entry) { return entry.second.device == device; });
  }
  void ForgetReservations(CUdevice device) {
    std::lock_guard lock(mutex_);
    std::erase_if(reservations_, [&](const auto& entry) {
      if (entry.second.device != device) return false;
      ForgetMappings(entry.first, entry.second.bytes);
      return true;
    });
  }

 private:
  using Handles = std::map<CUmemGenericAllocationHandle, Physical>;

  // Forgets a handle that the program has released, unless still mapped.
  void ForgetUnused(Handles::iterator physical) {
    if (physical->second.is_released && !physical->second.is_mapped) physical_.erase(physical);
  }
  // Forgets the mappings in a freed range. Released handles end with the range; the others lose
  // their address and may be mapped anywhere again.
  void ForgetMappings(CUdeviceptr begin, std::size_t bytes) {
    mappings_.erase(mappings_.lower_bound(begin), mappings_.lower_bound(begin + bytes));
    const auto was_here = [&](const Physical& physical) {
      return physical.mapped_at >= begin && physical.mapped_at - begin < bytes;
    };
    std::erase_if(physical_, [&](const auto& entry) {
      return entry.second.is_released && was_here(entry.second);
    });
    for (auto& [handle, physical] : physical_)
      if (was_here(physical)) physical = {.bytes = physical.bytes};
  }
  // Whether one reservation contains the range.
  bool IsReserved(CUdeviceptr address, std::size_t bytes) const {
    const auto after = reservations_.upper_bound(address);
    if (after == reservations_.begin()) return false;
    const auto& [begin, reservation] = *std::prev(after);
    const std::size_t offset = address - begin;
    return offset <= reservation.bytes && bytes <= reservation.bytes - offset;
  }
  // Whether any mapping meets the range.
  bool Overlaps(CUdeviceptr address, std::size_t bytes) const {
    const auto next = mappings_.lower_bound(address);
    if (next != mappings_.end() && next->first - address < bytes) return true;
    return next != mappings_.begin() &&
           address - std::prev(next)->first < std::prev(next)->second.bytes;
  }
  bool IsMapped(CUdeviceptr address, std::size_t bytes) const {
    std::size_t covered = 0;
    for (auto mapping = mappings_.find(address); mapping != mappings_.end(); ++mapping) {
      if (covered >= bytes || mapping->first != address + covered) break;
      covered += mapping->second.bytes;
    }
    return bytes > 0 && covered == bytes;
  }

  std::mutex mutex_;
  std::map<CUdeviceptr, Reservation> reservations_;
  std::map<CUdeviceptr, Mapping> mappings_;
  Handles physical_;
  CUmemGenericAllocationHandle minted_ = 0;
};

VirtualMemory& TheMemory() {
  static auto* const memory = new VirtualMemory();
  return *memory;
}

CUresult CheckProperties(const CUmemAllocationProp* properties) {
  if (!properties || properties->type != CU_MEM_ALLOCATION_TYPE_PINNED)
    return CUDA_ERROR_INVALID_VALUE;
  if (properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
    return Refuse("cuMemCreate of host memory");
  if (properties->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE)
    return Refuse("cuMemCreate of memory for other processes");
  return CheckDevice(properties->location.id);
}

}  // namespace

bool HasReservations(CUdevice device) { return TheMemory().HasReservations(device); }
void ForgetReservations(CUdevice device) { TheMemory().ForgetReservations(device); }

CUresult ReserveAddresses(CUdeviceptr* address, std::size_t bytes, std::size_t alignment,
                          CUdeviceptr, unsigned long long flags) {
  if (!address || bytes == 0 || bytes % kGranularity != 0 || flags != 0 ||
      (alignment & (alignment - 1)) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  alignment = std::max(alignment, kGranularity);
  Reservation reservation{.bytes = bytes};
  TORPOR_CU_TRY(Runtime().cudaGetDevice(&reservation.device));
  TORPOR_CU_TRY(Runtime().cudaMalloc(&reservation.allocation, bytes));
  // Allocations are usually aligned: takes more memory for the alignment only if needed.
  if (AddressOf(reservation.allocation) % alignment != 0) {
    TORPOR_CU_TRY(Runtime().cudaFree(reservation.allocation));
    TORPOR_CU_TRY(Runtime().cudaMalloc(&reservation.allocation, bytes + alignment));
  }
  *address = (AddressOf(reservation.allocation) + alignment - 1) & ~(alignment - 1);
  TheMemory().Reserve(*address, reservation);
  return CUDA_SUCCESS;
}

CUresult FreeAddresses(CUdeviceptr address, std::size_t bytes) {
  void* allocation = nullptr;
  TORPOR_CU_TRY(TheMemory().Unreserve(address, bytes, allocation));
  return ToCuResult(Runtime().cudaFree(allocation));
}

CUresult CreatePhysical(CUmemGenericAllocationHandle* handle, std::size_t bytes,
                        const CUmemAllocationProp* properties, unsigned long long flags) {
  if (!handle || bytes == 0 || bytes % kGranularity != 0 || flags != 0)
    return CUDA_ERROR_INVALID_VALUE;
  TORPOR_CU_TRY(CheckProperties(properties));
  *handle = TheMemory().Create(bytes);
  return CUDA_SUCCESS;
}

CUresult ReleasePhysical(CUmemGenericAllocationHandle handle) {
  return TheMemory().Release(handle);
}

CUresult MapPhysical(CUdeviceptr address, std::size_t bytes, std::size_t offset,
                     CUmemGenericAllocationHandle handle, unsigned long long flags) {
  if (offset != 0 || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return TheMemory().Map(address, bytes, handle);
}

CUresult UnmapPhysical(CUdeviceptr address, std::size_t bytes) {
  // Earlier work may still use the mapping.
  TORPOR_CU_TRY(Runtime().cudaDeviceSynchronize());
  return TheMemory().Unmap(address, bytes);
}

CUresult SetAccess(CUdeviceptr address, std::size_t bytes, const CUmemAccessDesc* descriptions,
                   std::size_t count) {
  if (!descriptions || count == 0 || !TheMemory().Covers(address, bytes))
    return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < count; ++i) {
    if (descriptions[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE)
      TORPOR_CU_TRY(CheckDevice(descriptions[i].location.id));
    if (descriptions[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
      return Refuse("cuMemSetAccess of less than reading and writing");
  }
  return CUDA_SUCCESS;
}

CUresult GetAccess(unsigned long long* flags, const CUmemLocation* location, CUdeviceptr address) {
  if (!flags || !location || !TheMemory().Contains(address)) return CUDA_ERROR_INVALID_VALUE;
  *flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return CUDA_SUCCESS;
}

CUresult GetGranularity(std::size_t* bytes, const CUmemAllocationProp* properties,
                        CUmemAllocationGranularity_flags) {
  if (!bytes) return CUDA_ERROR_INVALID_VALUE;
  TORPOR_CU_TRY(CheckProperties(properties));
  *bytes = kGranularity;
  return CUDA_SUCCESS;
}

}  // namespace torpor::shim
