#include "server/executor/gpu/device_list.h"

#include "base/status_macros.h"

namespace torpor::executor {

absl::StatusOr<std::vector<DeviceProperties>> ListDevices(const std::string& cuda_library_dir) {
  TORPOR_ASSIGN_OR_RETURN(const CudaDriver driver, LoadCudaDriver(cuda_library_dir));
  TORPOR_ASSIGN_OR_RETURN(const int count, CountDevices(driver));
  std::vector<DeviceProperties> devices;
  for (int i = 0; i < count; ++i) {
    TORPOR_ASSIGN_OR_RETURN(DeviceProperties device, DescribeDevice(driver, i));
    devices.push_back(std::move(device));
  }
  return devices;
}

}  // namespace torpor::executor
