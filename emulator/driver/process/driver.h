#pragma once

#include <cuda.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "emulator/driver/base/handle_table.h"
#include "emulator/driver/base/messages.h"
#include "emulator/driver/context/context.h"
#include "emulator/driver/context/primary_context.h"
#include "emulator/driver/device/device.h"
#include "emulator/driver/memory/address_space.h"
#include "emulator/driver/memory/physical_memory.h"
#include "emulator/driver/module/linker.h"
#include "emulator/driver/module/module.h"
#include "emulator/driver/stream/capture.h"
#include "emulator/driver/texture/array.h"
#include "emulator/driver/texture/texture_objects.h"
#include "emulator/node/environment.h"
#include "emulator/node/kernel_times.h"
#include "emulator/node/node_file.h"

namespace torpor::emulator {

// Work that a capture has kept. A launch holds what it needs, whatever becomes of the graph.
struct CapturedGraph {
  std::shared_ptr<const std::vector<Capture::Work>> work;
};

// The driver of this process: its devices and the tables of its handles. Never destroyed, since
// threads of streams may run while the process exits. Thread-safe.
class Driver final : public ContextRegistry {
 public:
  static Driver& Get();

  // cuInit: reads the topology at the first call.
  CUresult Initialize();
  // CUDA_ERROR_NOT_INITIALIZED before cuInit and in a forked child; CUDA_ERROR_DEINITIALIZED at
  // exit.
  CUresult state() const { return state_.load(std::memory_order_acquire); }

  // Valid only when initialised, as is everything below.
  const Topology& topology() const { return topology_; }
  SharedNodeState& node() { return node_->state(); }
  KernelTimes& kernel_times() { return *kernel_times_; }

  AddressSpace& space() { return space_; }
  const std::vector<std::unique_ptr<DriverDevice>>& devices() const { return devices_; }
  // Returns null for an invalid ordinal.
  DriverDevice* device(CUdevice index);
  // Returns the device at `place` in the topology; null if this process does not see it.
  DriverDevice* DeviceAt(unsigned place);
  // `index` must be valid.
  PrimaryContext& primary_context(CUdevice index) {
    return *primary_contexts_[static_cast<std::size_t>(index)];
  }

  HandleTable<Context, CUcontext>& contexts() { return contexts_; }
  HandleTable<StreamObject, CUstream>& streams() { return streams_; }
  HandleTable<Event, CUevent>& events() { return events_; }
  // Graphs, and graphs ready for launches; both are captured work, which launches share.
  HandleTable<CapturedGraph, CUgraph>& graphs() { return graphs_; }
  HandleTable<CapturedGraph, CUgraphExec>& graph_execs() { return graph_execs_; }
  HandleTable<ModuleObject, CUmodule>& modules() { return modules_; }
  FunctionTable& functions() { return functions_; }
  HandleTable<Linker, CUlinkState>& linkers() { return linkers_; }
  // Each handle holds one reference: cuMemRetainAllocationHandle makes another handle.
  HandleTable<PhysicalMemory, CUmemGenericAllocationHandle>& memory() { return memory_; }

  ArrayTable& arrays() { return arrays_; }
  MipmappedArrayTable& mipmapped_arrays() { return mipmapped_arrays_; }
  TextureObjects& texture_objects() { return texture_objects_; }

  CUcontext AddContext(const std::shared_ptr<Context>& context) override;
  std::shared_ptr<Context> RemoveContext(CUcontext context) override;

 private:
  Driver() = default;
  // The work of the first cuInit. Fails with the result of cuInit.
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
  std::vector<std::unique_ptr<DriverDevice>> devices_;
  std::vector<std::unique_ptr<PrimaryContext>> primary_contexts_;  // one a device
  HandleTable<Context, CUcontext> contexts_;
  HandleTable<StreamObject, CUstream> streams_;
  HandleTable<Event, CUevent> events_;
  HandleTable<CapturedGraph, CUgraph> graphs_;
  HandleTable<CapturedGraph, CUgraphExec> graph_execs_;
  HandleTable<ModuleObject, CUmodule> modules_;
  FunctionTable functions_;
  HandleTable<Linker, CUlinkState> linkers_;
  HandleTable<PhysicalMemory, CUmemGenericAllocationHandle> memory_;
  ArrayTable arrays_;
  MipmappedArrayTable mipmapped_arrays_;
  TextureObjects texture_objects_{{arrays_, mipmapped_arrays_, space_}};
  std::set<std::shared_ptr<Context>> alive_;
};

}  // namespace torpor::emulator
