#include "server/executor/device_list.h"

#include "absl/strings/str_format.h"
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

std::string UuidText(const std::array<std::uint8_t, 16>& uuid) {
  std::string text = "GPU";
  for (std::size_t i = 0; i < uuid.size(); ++i) {
    const bool starts_group = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
    absl::StrAppendFormat(&text, "%s%02x", starts_group ? "-" : "", uuid[i]);
  }
  return text;
}

}  // namespace torpor::executor
