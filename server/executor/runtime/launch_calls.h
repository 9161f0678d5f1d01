#pragma once

#include <vector>

#include "proto/cuda_api/cudart_dispatch.h"
#include "server/executor/gpu/device.h"
#include "server/executor/image/device_image.h"
#include "server/executor/module/session_modules.h"
#include "server/executor/runtime/kernel_parameters.h"
#include "server/executor/runtime/stream_set.h"

namespace torpor::executor {

// Launches kernels of a session. Not thread-safe; call with the device current.
class LaunchCalls final : public cuda_api::CudartLaunchHandler {
 public:
  // All must outlive this.
  LaunchCalls(const Device& device, const SessionModules& modules, KernelParameters& parameters,
              StreamSet& streams, DeviceImage& image)
      : device_(device),
        modules_(modules),
        parameters_(parameters),
        streams_(streams),
        image_(image) {}

  cuda_api::CallStatus LaunchKernel(const wire::LaunchKernel& command) override;

 private:
  CUresult Launch(const wire::LaunchKernel& command, CUfunction function, CUstream stream,
                  void** addresses) const;
  // Points addresses_ at the parameters in `bytes`.
  void** AddressesIn(std::uint8_t* bytes, const std::vector<wire::KernelParameter>& layout);

  const Device& device_;
  const SessionModules& modules_;
  KernelParameters& parameters_;
  StreamSet& streams_;
  DeviceImage& image_;
  std::vector<void*> addresses_;  // of the parameters of a launch; reused from launch to launch
};

}  // namespace torpor::executor
