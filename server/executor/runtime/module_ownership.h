#pragma once

#include <cuda.h>

#include <cstdint>
#include <string_view>

#include "base/units.h"
#include "proto/cuda_api/call_outcome.h"
#include "server/executor/gpu/device.h"
#include "server/executor/image/device_image.h"
#include "server/executor/module/session_modules.h"
#include "server/executor/runtime/stream_set.h"

namespace torpor::executor {

// Gives a session a module of its own, in place of the one that sessions share, before a command
// names a variable or sets an attribute that others would notice (SessionModules). Not
// thread-safe; call with the device current.
class ModuleOwnership {
 public:
  // All must outlive this.
  ModuleOwnership(const Device& device, SessionModules& modules, StreamSet& streams,
                  DeviceImage& image)
      : device_(device), modules_(modules), streams_(streams), image_(image) {}

  // Makes the module the session's own; waits for all of the session's work if the module was
  // shared. `what` names the call in messages.
  cuda_api::CallStatus TakeOwn(std::uint64_t module, std::string_view what);

  // Finds a variable in a module that is the session's own from then on. `variable` is valid until
  // the module is unloaded.
  cuda_api::CallStatus Variable(std::uint64_t module, std::string_view name,
                                const LoadedVariable*& variable);

  // Finds the address of [offset, offset + bytes) of a variable, for the work that is enqueued
  // next.
  cuda_api::CallStatus VariableBytes(std::uint64_t module, std::string_view name,
                                     std::uint64_t offset, Bytes bytes, CUdeviceptr& address);

 private:
  const Device& device_;
  SessionModules& modules_;
  StreamSet& streams_;
  DeviceImage& image_;
};

}  // namespace torpor::executor
