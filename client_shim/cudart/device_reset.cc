// cudaDeviceSynchronize and cudaDeviceReset: the entries about everything on a device.
#include "client_shim/cudart/call/entry.h"
#include "client_shim/cudart/device/devices.h"
#include "client_shim/cudart/device/peer_access.h"
#include "client_shim/cudart/graph/graph_memory.h"
#include "client_shim/cudart/graph_api/graph_exec.h"
#include "client_shim/cudart/managed/managed_ranges.h"
#include "client_shim/cudart/managed/managed_variables.h"
#include "client_shim/cudart/memory/host_register.h"
#include "client_shim/cudart/memory/memory_pools.h"
#include "client_shim/cudart/module/modules.h"
#include "client_shim/cudart/module/symbol_addresses.h"
#include "client_shim/cudart/stream/capture.h"
#include "client_shim/cudart/stream/events.h"
#include "client_shim/cudart/stream/host_functions.h"
#include "client_shim/cudart/stream/streams.h"
#include "client_shim/cudart/texture/arrays.h"
#include "client_shim/cudart/texture/texture_objects.h"

namespace torpor::shim {
namespace {

// Asks nothing of the executor if all commands were waited for already.
cudaError_t AwaitDevice() {
  if (Core().IsDrained()) return Core().TakeAsyncError();
  const std::uint64_t commands = Core().CommandCount();
  TORPOR_TRY(Ask(wire::DeviceSynchronize{}));
  NoteIdleDevice(commands + 1);
  return cudaSuccess;
}

cudaError_t SynchronizeDevice() {
  TORPOR_TRY(Begin());
  TORPOR_TRY(RefuseUnsafe());
  TORPOR_TRY(AwaitAllHostFunctions());
  TORPOR_TRY(AwaitDevice());
  TORPOR_TRY(ReleasePoolMemory());
  return FetchManagedVariables();
}

// Whether `address` is memory allocated for the device in use.
bool IsOfThisDevice(std::uint64_t address) {
  ClientCore::Allocation allocation;
  return Core().FindAllocation(address, allocation) && allocation.device == DeviceInUse();
}

// Destroys everything that the process has on the current device. The session, the limits and the
// handles of other libraries (undefined by CUDA) remain.
cudaError_t ResetDevice() {
  TORPOR_TRY(SynchronizeDevice());
  AbandonCaptures();
  GraphExec::DestroyAll();
  TORPOR_TRY(DestroyAllEvents());
  TORPOR_TRY(DestroyAllStreams());
  TORPOR_TRY(DestroyAllTextureObjects());
  TORPOR_TRY(DestroyAllArrays());
  TORPOR_TRY(UnloadAllModules());
  ForgetSymbolAddresses();
  ForgetPools();
  ForgetGraphMemory();
  TheManagedRanges().RemoveIf(IsOfThisDevice);
  DisablePeerAccess(DeviceInUse());
  ResetDeviceFlags();
  // The executor must have destroyed every object that names the memory.
  TORPOR_TRY(Ask(wire::DeviceSynchronize{}));
  TORPOR_TRY(UnregisterAll());
  TORPOR_TRY(Core().FreeAll());
  return ResetManagedVariables();
}

}  // namespace
}  // namespace torpor::shim

using namespace torpor::shim;  // NOLINT(google-build-using-namespace): the entries' own library

cudaError_t cudaDeviceSynchronize() {
  return Entry([] { return SynchronizeDevice(); });
}

cudaError_t cudaDeviceReset() {
  return Entry([] { return ResetDevice(); });
}
