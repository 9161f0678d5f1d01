// Memory and events shared by the processes of a function (cudaIpc...).
#include <cstring>

#include "client_shim/cudart/call/entry.h"
#include "client_shim/cudart/graph/graph_memory.h"
#include "client_shim/cudart/memory/memory_pools.h"
#include "client_shim/cudart/stream/events.h"
#include "client_shim/cudart/stream/free_unused.h"

namespace torpor::shim {
namespace {

// The first word of a handle tells the kind, so that arbitrary bytes are refused.
constexpr std::uint64_t kMemoryHandle = 0x6d65'6d00'726f'7454;
constexpr std::uint64_t kEventHandle = 0x6576'7400'726f'7454;

template <typename Content, typename Handle>
void Write(std::uint64_t kind, const Content& content, Handle& handle) {
  static_assert(sizeof kind + sizeof content <= sizeof handle);
  handle = {};
  std::memcpy(handle.reserved, &kind, sizeof kind);
  std::memcpy(handle.reserved + sizeof kind, &content, sizeof content);
}

// Returns false for a handle of another kind and for other bytes.
template <typename Content, typename Handle>
bool Read(std::uint64_t kind, const Handle& handle, Content& content) {
  std::uint64_t found = 0;
  std::memcpy(&found, handle.reserved, sizeof found);
  std::memcpy(static_cast<void*>(&content), handle.reserved + sizeof found, sizeof content);
  return found == kind;
}

// Whether the allocation is this process's own, from cudaMalloc or a similar call.
bool IsShareable(std::uint64_t address, const ClientCore::Allocation& allocation) {
  std::uint64_t room = 0;
  return allocation.on_device && !allocation.is_foreign &&
         !FindInPools(allocation, address, room) && !GraphMemory::Find(allocation.begin);
}

// cudaIpcGetMemHandle: shares the whole allocation around `pointer`.
cudaError_t GetMemoryHandle(cudaIpcMemHandle_t* out, void* pointer) {
  if (!out) return cudaErrorInvalidValue;
  TORPOR_TRY(Begin());
  ClientCore::Allocation allocation;
  if (!Core().FindAllocation(Address(pointer), allocation)) return cudaErrorInvalidValue;
  UseDevice(allocation.device);
  if (!IsShareable(Address(pointer), allocation)) return cudaErrorInvalidValue;
  ClientCore::MemoryHandle handle;
  TORPOR_TRY(Core().ShareMemory(allocation.begin, handle));
  Write(kMemoryHandle, handle, *out);
  return cudaSuccess;
}

// Checks that the current device reaches the memory, which may be another device's: as a peer's.
cudaError_t CheckReach(const ClientCore::Allocation& memory) {
  if (memory.device == DeviceInUse()) return cudaSuccess;
  if (!Core().session().has_peer_access) return cudaErrorPeerAccessUnsupported;
  return Core().OfDevice(memory.device)->Start();
}

// cudaIpcOpenMemHandle: gives the begin of the other process's allocation.
cudaError_t OpenMemoryHandle(void** out, const cudaIpcMemHandle_t& in, unsigned flags) {
  ClientCore::MemoryHandle handle;
  if (!out || (flags & ~unsigned{cudaIpcMemLazyEnablePeerAccess}) != 0)
    return cudaErrorInvalidValue;
  if (!Read(kMemoryHandle, in, handle)) return cudaErrorInvalidResourceHandle;
  TORPOR_TRY(Begin());
  TORPOR_TRY(RefuseUnsafe());
  ClientCore::Allocation opened;
  TORPOR_TRY(Core().OpenMemory(handle, opened));
  if (const cudaError_t error = CheckReach(opened); error != cudaSuccess) {
    Core().CloseMemory(opened.begin);
    return error;
  }
  *out = reinterpret_cast<void*>(opened.begin);
  return cudaSuccess;
}

cudaError_t CloseMemoryHandle(void* pointer) {
  TORPOR_TRY(Begin());
  ClientCore::Allocation allocation;
  const bool is_open = Core().FindAllocation(Address(pointer), allocation) &&
                       allocation.is_foreign && allocation.begin == Address(pointer);
  if (!is_open) return cudaErrorInvalidValue;
  return FreeUnused([&] { return Core().CloseMemory(Address(pointer)); });
}

cudaError_t GetEventHandle(cudaIpcEventHandle_t* out, cudaEvent_t event) {
  if (!out) return cudaErrorInvalidValue;
  SharedEventSlots shared;
  TORPOR_TRY(FindSharedEvent(event, shared));
  Write(kEventHandle, shared, *out);
  return cudaSuccess;
}

cudaError_t OpenEventHandle(cudaEvent_t* out, const cudaIpcEventHandle_t& in) {
  SharedEventSlots shared;
  if (!out) return cudaErrorInvalidValue;
  if (!Read(kEventHandle, in, shared)) return cudaErrorInvalidResourceHandle;
  TORPOR_TRY(Begin());
  TORPOR_TRY(RefuseUnsafe());
  return OpenSharedEvent(shared, *out);
}

}  // namespace
}  // namespace torpor::shim

using namespace torpor::shim;  // NOLINT(google-build-using-namespace): the entries' own library

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* pointer) {
  return Entry([&] { return GetMemoryHandle(handle, pointer); });
}

cudaError_t cudaIpcOpenMemHandle(void** pointer, cudaIpcMemHandle_t handle, unsigned int flags) {
  return Entry([&] { return OpenMemoryHandle(pointer, handle, flags); });
}

cudaError_t cudaIpcCloseMemHandle(void* pointer) {
  return Entry([&] { return CloseMemoryHandle(pointer); });
}

cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t* handle, cudaEvent_t event) {
  return Entry([&] { return GetEventHandle(handle, event); });
}

cudaError_t cudaIpcOpenEventHandle(cudaEvent_t* event, cudaIpcEventHandle_t handle) {
  return Entry([&] { return OpenEventHandle(event, handle); });
}
