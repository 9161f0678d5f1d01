#pragma once

#include "proto/cuda_api/cudart_dispatch.h"
#include "server/executor/gpu/device.h"
#include "server/executor/image/device_image.h"
#include "server/executor/module/session_modules.h"
#include "server/executor/runtime/command_memory.h"
#include "server/executor/runtime/completion_marks.h"
#include "server/executor/runtime/downloads.h"
#include "server/executor/runtime/module_ownership.h"
#include "server/executor/runtime/stream_set.h"

namespace torpor::executor {

// Carries out the commands of a session that name variables of modules. Not thread-safe; call
// with the device current.
class SymbolCalls final : public cuda_api::CudartSymbolHandler {
 public:
  // Collaborators, which must outlive the calls.
  struct Parts {
    const Device& device;
    SessionModules& modules;
    ModuleOwnership& ownership;
    StreamSet& streams;
    DeviceImage& image;
    const CommandMemory& memory;
    CompletionMarks& marks;
    Downloads& downloads;
  };
  explicit SymbolCalls(const Parts& parts) : parts_(parts) {}

  cuda_api::CallStatus SymbolPublish(const wire::SymbolPublish& command) override;
  cuda_api::CallStatus SymbolAddress(const wire::SymbolAddress& command,
                                     wire::SymbolAddressResult& result) override;
  cuda_api::CallStatus MemcpyToSymbol(const wire::MemcpyToSymbol& command) override;
  cuda_api::CallStatus MemcpyFromSymbol(const wire::MemcpyFromSymbol& command,
                                        wire::MemcpyFromSymbolResult& result) override;

 private:
  // MemcpyToSymbol without the completion mark.
  cuda_api::CallStatus Write(const wire::MemcpyToSymbol& command);

  const Parts parts_;
};

}  // namespace torpor::executor
