#pragma once

#include <cuda.h>

#include <cstddef>

// The driver's virtual memory calls, within the limits of a session's single address range: a
// reservation allocates memory of the current device at once, and created memory lives at its first
// mapped address. Refused: the same memory at two addresses, or shared with another process.
namespace torpor::shim {

CUresult ReserveAddresses(CUdeviceptr* address, std::size_t bytes, std::size_t alignment,
                          CUdeviceptr wanted, unsigned long long flags);
CUresult FreeAddresses(CUdeviceptr address, std::size_t bytes);

CUresult CreatePhysical(CUmemGenericAllocationHandle* handle, std::size_t bytes,
                        const CUmemAllocationProp* properties, unsigned long long flags);
CUresult ReleasePhysical(CUmemGenericAllocationHandle handle);

CUresult MapPhysical(CUdeviceptr address, std::size_t bytes, std::size_t offset,
                     CUmemGenericAllocationHandle handle, unsigned long long flags);
// Unmaps one or several whole mappings.
CUresult UnmapPhysical(CUdeviceptr address, std::size_t bytes);

CUresult SetAccess(CUdeviceptr address, std::size_t bytes, const CUmemAccessDesc* descriptions,
                   std::size_t count);
CUresult GetAccess(unsigned long long* flags, const CUmemLocation* location, CUdeviceptr address);
CUresult GetGranularity(std::size_t* bytes, const CUmemAllocationProp* properties,
                        CUmemAllocationGranularity_flags option);

// Whether any addresses of the device are reserved. Reservations belong to no context.
bool HasReservations(CUdevice device);
// Forgets all reservations and mappings of the device, after all memory of the device was freed.
void ForgetReservations(CUdevice device);

}  // namespace torpor::shim
