#include "server/executor/runtime/session_runtime.h"

#include <utility>

namespace torpor::executor {

SessionRuntime::SessionRuntime(const Device& device, ModuleLibrary& library, SessionMemory& memory,
                               GraphSet::RunCommand run, const std::atomic<std::uint64_t>* lease)
    : objects_(device, library, memory, lease),
      memory_(memory, objects_.modules),
      marks_(device, objects_.streams, memory.window()),
      downloads_(device, objects_.streams, memory.window()),
      ownership_(device, objects_.modules, objects_.streams, memory.image()),
      parameters_(memory, objects_.modules, objects_.textures),
      stream_calls_(device, objects_.streams, objects_.events, marks_),
      event_calls_(device, objects_.events, objects_.streams, marks_),
      shared_event_calls_(device, objects_.streams, objects_.windows),
      limit_calls_(device),
      module_calls_(
          {device, objects_.modules, ownership_, objects_.streams, memory.image(), memory_}),
      launch_calls_(device, objects_.modules, parameters_, objects_.streams, memory.image()),
      symbol_calls_({device, objects_.modules, ownership_, objects_.streams, memory.image(),
                     memory_, marks_, downloads_}),
      memory_calls_({device, memory, memory_, objects_.streams, marks_, downloads_}),
      array_calls_(device, objects_.arrays, memory_, objects_.streams, memory.image()),
      texture_calls_(
          {device, objects_.textures, objects_.arrays, memory_, memory, objects_.streams}),
      graph_calls_(device, objects_.streams, memory.image(), std::move(run)),
      handlers_{stream_calls_, event_calls_,   shared_event_calls_, limit_calls_,
                module_calls_, launch_calls_,  symbol_calls_,       memory_calls_,
                array_calls_,  texture_calls_, graph_calls_} {}

cuda_api::CallStatus SessionRuntime::Synchronize() {
  wire::DeviceSynchronizeResult nothing;
  return stream_calls_.DeviceSynchronize({}, nothing);
}

}  // namespace torpor::executor
