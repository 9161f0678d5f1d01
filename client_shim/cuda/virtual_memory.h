#pragma once

#include <cuda.h>

#include <cstddef>

// The driver's virtual memory calls, within the limits of a session's single address range: a
// reservation allocates memory of the current device at once, and created memory lives at its first
// mapped address. Refused: the same memory at two addresses, or shared with another process.
namespace torpor::shim {

// Reserves and allocates `bytes` bytes, a multiple of 2 MiB, on the current device. `alignment` is
// a power of two; `wanted` is ignored. FreeAddresses fails while mappings are left in the range.
CUresult ReserveAddresses(CUdeviceptr* address, std::size_t bytes, std::size_t alignment,
                          CUdeviceptr wanted, unsigned long long flags);
CUresult FreeAddresses(CUdeviceptr address, std::size_t bytes);

// Creates a handle for `bytes` bytes, a multiple of 2 MiB, of pinned device memory. A released
// handle cannot be mapped again; its present mapping stays.
CUresult CreatePhysical(CUmemGenericAllocationHandle* handle, std::size_t bytes,
                        const CUmemAllocationProp* properties, unsigned long long flags);
CUresult ReleasePhysical(CUmemGenericAllocationHandle handle);

// Maps all of the handle's memory into a reservation; `offset` and `flags` must be 0.
CUresult MapPhysical(CUdeviceptr address, std::size_t bytes, std::size_t offset,
                     CUmemGenericAllocationHandle handle, unsigned long long flags);
// Waits for the device's work and unmaps one or several whole mappings.
CUresult UnmapPhysical(CUdeviceptr address, std::size_t bytes);

// Mapped memory is readable and writable from the start: SetAccess checks arguments and refuses
// less access, GetAccess returns the same flags for all devices.
CUresult SetAccess(CUdeviceptr address, std::size_t bytes, const CUmemAccessDesc* descriptions,
                   std::size_t count);
CUresult GetAccess(unsigned long long* flags, const CUmemLocation* location, CUdeviceptr address);
// 2 MiB for minimum and recommendation alike.
CUresult GetGranularity(std::size_t* bytes, const CUmemAllocationProp* properties,
                        CUmemAllocationGranularity_flags option);

// Whether any addresses of the device are reserved. Reservations belong to no context.
bool HasReservations(CUdevice device);
// Forgets all reservations and mappings of the device, after all memory of the device was freed.
void ForgetReservations(CUdevice device);

}  // namespace torpor::shim
