#pragma once

#include "proto/cuda_api/cudart_dispatch.h"
#include "server/executor/gpu/device.h"
#include "server/executor/image/device_image.h"
#include "server/executor/module/module_store.h"
#include "server/executor/module/session_modules.h"
#include "server/executor/runtime/command_memory.h"
#include "server/executor/runtime/module_ownership.h"
#include "server/executor/runtime/stream_set.h"

namespace torpor::executor {

// Carries out the commands of a session that load modules and that ask or set attributes of
// their kernels. Not thread-safe; call with the device current.
class ModuleCalls final : public cuda_api::CudartModuleHandler {
 public:
  // Collaborators, which must outlive the calls.
  struct Parts {
    const Device& device;
    SessionModules& modules;
    ModuleOwnership& ownership;
    StreamSet& streams;
    DeviceImage& image;
    const CommandMemory& memory;
  };
  explicit ModuleCalls(const Parts& parts) : parts_(parts) {}

  cuda_api::CallStatus ModuleUse(const wire::ModuleUse& command) override;
  cuda_api::CallStatus ModuleLoad(const wire::ModuleLoad& command,
                                  wire::ModuleLoadResult& result) override;
  cuda_api::CallStatus ModuleUpload(const wire::ModuleUpload& command,
                                    wire::ModuleUploadResult& result) override;
  cuda_api::CallStatus ModuleUnload(const wire::ModuleUnload& command) override;
  cuda_api::CallStatus ModuleBindGlobals(const wire::ModuleBindGlobals& command) override;
  cuda_api::CallStatus KernelCreate(const wire::KernelCreate& command) override;
  cuda_api::CallStatus FuncSetAttribute(const wire::FuncSetAttribute& command) override;
  cuda_api::CallStatus FuncGetAttributes(const wire::FuncGetAttributes& command,
                                         wire::FuncGetAttributesResult& result) override;
  cuda_api::CallStatus OccupancyMaxActiveBlocks(
      const wire::OccupancyMaxActiveBlocks& command,
      wire::OccupancyMaxActiveBlocksResult& result) override;
  cuda_api::CallStatus OccupancyClusters(const wire::OccupancyClusters& command,
                                         wire::OccupancyClustersResult& result) override;

 private:
  const Parts parts_;
  ModuleUploadBuffer upload_;
};

}  // namespace torpor::executor
