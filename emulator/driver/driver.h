#pragma once

#include <cuda.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "emulator/driver/address_space.h"
#include "emulator/driver/array.h"
#include "emulator/driver/context.h"
#include "emulator/driver/device.h"
#include "emulator/driver/handle_table.h"
#include "emulator/driver/image_objects.h"
#include "emulator/driver/linker.h"
#include "emulator/driver/messages.h"
#include "emulator/driver/module.h"
#include "emulator/driver/physical_memory.h"
#include "emulator/node/environment.h"
#include "emulator/node/kernel_times.h"
#include "emulator/node/node_file.h"

namespace torpor::emulator {

// The driver of this process. It lives until the process is gone: threads of its streams may run
// while the process exits. Thread-safe.
class Driver {
 public:
  static Driver& Get();

  // cuInit: reads the topology once.
  CUresult Initialize();
  // CUDA_ERROR_NOT_INITIALIZED before cuInit, and in a forked child; DEINITIALIZED at exit.
  CUresult state() const { return state_.load(std::memory_order_acquire); }

  // Of an initialised driver only.
  const Topology& topology() const { return topology_; }
  NodeState& node() { return node_->state(); }
  KernelTimes& kernel_times() { return *kernel_times_; }

  AddressSpace& space() { return space_; }
  const std::vector<std::unique_ptr<Device>>& devices() const { return devices_; }
  // Null if there is none.
  Device* device(CUdevice index);
  // The device of this place in the topology; null if this process does not see it.
  Device* DeviceAt(unsigned place);

  HandleTable<Context, CUcontext>& contexts() { return contexts_; }
  HandleTable<StreamObject, CUstream>& streams() { return streams_; }
  HandleTable<Event, CUevent>& events() { return events_; }
  HandleTable<Module, CUmodule>& modules() { return modules_; }
  HandleTable<Function, CUfunction>& functions() { return functions_; }
  HandleTable<Linker, CUlinkState>& linkers() { return linkers_; }
  // Each handle counts once: cuMemRetainAllocationHandle makes another one.
  HandleTable<PhysicalMemory, CUmemGenericAllocationHandle>& memory() { return memory_; }

  HandleTable<Array, CUarray>& arrays() { return arrays_; }
  HandleTable<MipmappedArray, CUmipmappedArray>& mipmapped_arrays() { return mipmapped_arrays_; }
  ImageObjects& image_objects() { return image_objects_; }

  CUcontext AddContext(const std::shared_ptr<Context>& context);
  // Waits for its work, then forgets it, its modules and its memory. Null and nothing done if it is
  // none.
  std::shared_ptr<Context> RemoveContext(CUcontext context);

 private:
  Driver() = default;
  // What cuInit does, the first time. Fails with the answer of cuInit.
  DriverResult<void> Start();
  void LeaveToParent();  // in a forked child
  void AtExit();
  void FreeMemoryOf(CUcontext context);

  std::atomic<CUresult> state_{CUDA_ERROR_NOT_INITIALIZED};
  std::mutex mutex_;
  Topology topology_;
  std::unique_ptr<NodeFile> node_;
  std::unique_ptr<KernelTimes> kernel_times_;
  AddressSpace space_;
  std::vector<std::unique_ptr<Device>> devices_;
  HandleTable<Context, CUcontext> contexts_;
  HandleTable<StreamObject, CUstream> streams_;
  HandleTable<Event, CUevent> events_;
  HandleTable<Module, CUmodule> modules_;
  HandleTable<Function, CUfunction> functions_;
  HandleTable<Linker, CUlinkState> linkers_;
  HandleTable<PhysicalMemory, CUmemGenericAllocationHandle> memory_;
  HandleTable<Array, CUarray> arrays_;
  HandleTable<MipmappedArray, CUmipmappedArray> mipmapped_arrays_;
  ImageObjects image_objects_;
  std::set<std::shared_ptr<Context>> alive_;
};

// The calling thread's stack of contexts.
struct CurrentContext {
  CUcontext handle = nullptr;
  std::shared_ptr<Context> context;
};
std::vector<CurrentContext>& ContextStack();

}  // namespace torpor::emulator
