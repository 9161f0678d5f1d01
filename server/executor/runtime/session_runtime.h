#pragma once

#include <atomic>
#include <cstdint>

#include "absl/status/status.h"
#include "proto/cuda_api/cudart_dispatch.h"
#include "server/executor/runtime/array_calls.h"
#include "server/executor/runtime/event_calls.h"
#include "server/executor/runtime/graph_calls.h"
#include "server/executor/runtime/graph_commands.h"
#include "server/executor/runtime/launch_calls.h"
#include "server/executor/runtime/limit_calls.h"
#include "server/executor/runtime/memory_calls.h"
#include "server/executor/runtime/module_calls.h"
#include "server/executor/runtime/shared_event_calls.h"
#include "server/executor/runtime/stream_calls.h"
#include "server/executor/runtime/symbol_calls.h"
#include "server/executor/runtime/texture_calls.h"

namespace torpor::executor {

// The CUDA objects of a session on this GPU.
struct RuntimeObjects {
  RuntimeObjects(const Device& device, ModuleLibrary& library, SessionMemory& memory,
                 const std::atomic<std::uint64_t>* lease)
      : windows(memory),
        modules(device, library, memory.image(), memory.tenant()),
        arrays(device, memory.image()),
        textures(device),
        events(device),
        streams(device, &memory.image().arrival(), lease) {}

  // Destroyed in reverse: work that waits for windows' slots, or writes slots, may outlive all
  // other objects, and kernels in destroyed streams may still need modules.
  PeerWindows windows;
  SessionModules modules;
  SessionArrays arrays;
  SessionTextures textures;
  EventSet events;
  StreamSet streams;
};

// The CUDA runtime of a session: the session's objects, and a handler for each subject of calls.
// Handlers look up every id among the session's objects and every range in the session's memory
// before they call the driver. Not thread-safe; call with the device current.
class SessionRuntime {
 public:
  // All must outlive this. `run` carries out a command of a graph; for `lease` see PendingWork.
  SessionRuntime(const Device& device, ModuleLibrary& library, SessionMemory& memory,
                 GraphSet::RunCommand run, const std::atomic<std::uint64_t>* lease);
  SessionRuntime(const SessionRuntime&) = delete;
  SessionRuntime& operator=(const SessionRuntime&) = delete;

  // For DispatchCudart; valid as long as this.
  const cuda_api::CudartHandlers& handlers() const { return handlers_; }

  // Sets the lease under which the following calls come.
  void SetLease(LeaseId lease) {
    shared_event_calls_.SetLease(lease);
    streams().pending().SetLease(lease);
  }
  // Waits for all of the session's work.
  cuda_api::CallStatus Synchronize();
  // Lets go of what only work in hand needs; all of the session's work is done.
  void ForgetWork() { objects_.windows.Forget(); }

  // Notes a command that is about to be carried out; see KeepsDriverGraphs.
  void NoteCommand(std::uint32_t call_id) {
    if (!graphs().empty() && !KeepsDriverGraphs(call_id)) graphs().NoteChange();
  }

  GraphSet& graphs() { return graph_calls_.graphs(); }
  StreamSet& streams() { return objects_.streams; }
  EventSet& events() { return objects_.events; }
  SessionModules& modules() { return objects_.modules; }
  SessionArrays& arrays() { return objects_.arrays; }
  bool has_memory_textures() const { return objects_.textures.reads_memory(); }
  absl::Status RebindTextures() { return texture_calls_.Rebind(); }

 private:
  RuntimeObjects objects_;
  const CommandMemory memory_;
  CompletionMarks marks_;
  Downloads downloads_;
  ModuleOwnership ownership_;
  KernelParameters parameters_;

  StreamCalls stream_calls_;
  EventCalls event_calls_;
  SharedEventCalls shared_event_calls_;
  LimitCalls limit_calls_;
  ModuleCalls module_calls_;
  LaunchCalls launch_calls_;
  SymbolCalls symbol_calls_;
  MemoryCalls memory_calls_;
  ArrayCalls array_calls_;
  TextureCalls texture_calls_;
  GraphCalls graph_calls_;
  const cuda_api::CudartHandlers handlers_;
};

}  // namespace torpor::executor
