#include "client_shim/core/memory/process_memory.h"

#include <algorithm>

#include "base/try.h"

namespace torpor::shim {

bool ProcessMemory::Forget(std::uint64_t address, bool on_device) {
  Allocation allocation;
  return allocations_.Find(address, allocation) && allocation.begin == address &&
         allocation.on_device == on_device && !allocation.is_foreign && allocations_.Erase(address);
}

std::uint64_t ProcessMemory::AllocatedBytes(int device) const {
  std::uint64_t bytes = 0;
  for (const Allocation& allocation : allocations_.All())
    if (allocation.on_device && allocation.device == device && !allocation.is_foreign)
      bytes += allocation.bytes;
  return bytes;
}

cudaError_t ProcessMemory::Open(const MemoryHandle& handle, const ProgramDevices& devices,
                                MemoryRequests& primary, Allocation& opened) {
  NoteSharing();
  const std::lock_guard lock(foreign_mutex_);
  ForeignMemory::Opened* const known = foreign_.Find(handle.address);
  if (!known) return OpenFirst(handle, devices, primary, opened);
  if (known->handle.token != handle.token) return cudaErrorInvalidResourceHandle;
  ++known->uses;
  return allocations_.Find(handle.address, opened) ? cudaSuccess : cudaErrorUnknown;
}

cudaError_t ProcessMemory::OpenFirst(const MemoryHandle& handle, const ProgramDevices& devices,
                                     MemoryRequests& primary, Allocation& opened) {
  wire::OpenMemoryReply reply;
  TORPOR_TRY(primary.Open(handle, reply));
  foreign_.Add(handle);
  // The program sees memory of a hidden device as memory of its first device.
  opened = {handle.address, reply.bytes, true, std::max(0, devices.DeviceOf(reply.device)), true};
  allocations_.Insert(opened);
  return cudaSuccess;
}

cudaError_t ProcessMemory::Close(std::uint64_t address, MemoryRequests& primary) {
  const std::lock_guard lock(foreign_mutex_);
  ForeignMemory::Opened* const known = foreign_.Find(address);
  if (!known) return cudaErrorInvalidValue;
  return --known->uses > 0 ? cudaSuccess : CloseLast(address, primary);
}

cudaError_t ProcessMemory::CloseWholly(std::uint64_t address, MemoryRequests& primary) {
  const std::lock_guard lock(foreign_mutex_);
  return foreign_.Find(address) ? CloseLast(address, primary) : cudaSuccess;
}

// Frees the addresses first: the daemon may give them to another session as soon as it is asked.
cudaError_t ProcessMemory::CloseLast(std::uint64_t address, MemoryRequests& primary) {
  const MemoryHandle handle = foreign_.Find(address)->handle;
  allocations_.Erase(address);
  foreign_.Remove(address);
  return primary.Close(handle);
}

}  // namespace torpor::shim
