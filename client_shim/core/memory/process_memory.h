#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "client_shim/core/client_core.h"
#include "client_shim/core/memory/allocation_map.h"
#include "client_shim/core/memory/foreign_memory.h"
#include "client_shim/core/memory/memory_requests.h"
#include "client_shim/core/program_devices.h"

namespace torpor::shim {

// The memory of a client process on all devices: the process's own allocations, and opened memory
// of other processes. Thread-safe.
class ProcessMemory {
 public:
  using Allocation = ClientCore::Allocation;
  using MemoryHandle = ClientCore::MemoryHandle;

  void Insert(const Allocation& allocation) { allocations_.Insert(allocation); }
  bool Find(std::uint64_t address, Allocation& allocation) const {
    return allocations_.Find(address, allocation);
  }
  std::vector<Allocation> All() const { return allocations_.All(); }
  // Removes the process's own allocation that begins at `address`. False if there is none, or if
  // the allocation is on the device (in host memory) and `on_device` is false (true). Of two
  // threads with the same address one succeeds.
  bool Forget(std::uint64_t address, bool on_device);
  // The bytes of device memory that the process has allocated for `device`.
  std::uint64_t AllocatedBytes(int device) const;

  // As ClientCore's functions. `primary` asks on behalf of the process's primary session.
  cudaError_t Open(const MemoryHandle& handle, const ProgramDevices& devices,
                   MemoryRequests& primary, Allocation& opened);
  cudaError_t Close(std::uint64_t address, MemoryRequests& primary);
  // Ends all uses of the memory at once; success if no memory is open at `address`.
  cudaError_t CloseWholly(std::uint64_t address, MemoryRequests& primary);

  // Whether memory was ever shared with other processes, in either direction.
  bool WasShared() const { return was_shared_; }
  void NoteSharing() { was_shared_ = true; }

 private:
  cudaError_t OpenFirst(const MemoryHandle& handle, const ProgramDevices& devices,
                        MemoryRequests& primary, Allocation& opened);
  cudaError_t CloseLast(std::uint64_t address, MemoryRequests& primary);

  AllocationMap allocations_;
  std::atomic<bool> was_shared_{false};
  std::mutex foreign_mutex_;  // held while the daemon is asked
  ForeignMemory foreign_;     // guarded by foreign_mutex_
};

}  // namespace torpor::shim
