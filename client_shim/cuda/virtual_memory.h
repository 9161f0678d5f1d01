#pragma once

#include <cuda.h>

#include <cstddef>

// The driver's virtual memory calls, as far as a session's one address range allows: a reservation
// is memory of the current device at once, which is counted from then on, and memory that is
// created is where it is first mapped. What cannot be so (the same memory at two addresses, or
// shared with another process) is refused.
namespace torpor::shim {

CUresult ReserveAddresses(CUdeviceptr* address, std::size_t bytes, std::size_t alignment,
                          CUdeviceptr wanted, unsigned long long flags);
CUresult FreeAddresses(CUdeviceptr address, std::size_t bytes);

CUresult CreatePhysical(CUmemGenericAllocationHandle* handle, std::size_t bytes,
                        const CUmemAllocationProp* properties, unsigned long long flags);
CUresult ReleasePhysical(CUmemGenericAllocationHandle handle);

CUresult MapPhysical(CUdeviceptr address, std::size_t bytes, std::size_t offset,
                     CUmemGenericAllocationHandle handle, unsigned long long flags);
// Of one or several whole mappings.
CUresult UnmapPhysical(CUdeviceptr address, std::size_t bytes);

CUresult SetAccess(CUdeviceptr address, std::size_t bytes, const CUmemAccessDesc* descriptions,
                   std::size_t count);
CUresult GetAccess(unsigned long long* flags, const CUmemLocation* location, CUdeviceptr address);
CUresult GetGranularity(std::size_t* bytes, const CUmemAllocationProp* properties,
                        CUmemAllocationGranularity_flags option);

// Whether addresses of the device are reserved, which belong to no context.
bool HasReservations(CUdevice device);
// All memory of the device was freed, that of reservations too: they and their mappings are gone.
void ForgetReservations(CUdevice device);

}  // namespace torpor::shim
