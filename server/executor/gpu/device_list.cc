#include "server/executor/gpu/device_list.h"

#include <spdlog/spdlog.h>

#include "base/status_macros.h"
#include "server/executor/gpu/device_files.h"

namespace torpor::executor {

absl::StatusOr<std::vector<DeviceProperties>> ListDevices(const std::string& cuda_library_dir) {
  TORPOR_ASSIGN_OR_RETURN(const CudaDriver driver, LoadCudaDriver(cuda_library_dir));
  const absl::StatusOr<int> counted = CountDevices(driver);
  if (!counted.ok() || *counted == 0) {
    if (const std::string hint = MissingDeviceFiles(); !hint.empty()) spdlog::warn("{}", hint);
  }
  TORPOR_ASSIGN_OR_RETURN(const int count, counted);
  std::vector<DeviceProperties> devices;
  for (int i = 0; i < count; ++i) {
    TORPOR_ASSIGN_OR_RETURN(DeviceProperties device, DescribeDevice(driver, i));
    devices.push_back(std::move(device));
  }
  return devices;
}

}  // namespace torpor::executor
