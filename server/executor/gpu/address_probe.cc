#include "server/executor/gpu/address_probe.h"

#include <memory>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "server/executor/gpu/address_reservation.h"
#include "server/executor/gpu/address_window.h"

namespace torpor::executor {
namespace {

// Reserves the candidate's addresses on every GPU in turn, and in this process.
absl::Status Try(const std::vector<std::unique_ptr<Device>>& devices,
                 const server::NodeAddresses& candidate) {
  for (const std::unique_ptr<Device>& device : devices) {
    TORPOR_RETURN_IF_ERROR(device->MakeCurrent());
    TORPOR_RETURN_IF_ERROR(
        AddressReservation::Make(*device, candidate.device_base, candidate.device_bytes).status());
  }
  return AddressWindow::Reserve(candidate.host_bytes, candidate.host_base).status();
}

}  // namespace

absl::StatusOr<AddressProbe> ProbeAddresses(const std::string& cuda_library_dir,
                                            const std::vector<int>& gpus,
                                            const std::vector<server::NodeAddresses>& candidates) {
  TORPOR_ASSIGN_OR_RETURN(const CudaDriver driver, LoadCudaDriver(cuda_library_dir));
  std::vector<std::unique_ptr<Device>> devices;
  for (const int gpu : gpus) {
    TORPOR_ASSIGN_OR_RETURN(devices.emplace_back(), Device::Open(driver, gpu));
  }
  AddressProbe probe;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const server::NodeAddresses& candidate = candidates[i];
    const absl::Status status = Try(devices, candidate);
    if (status.ok()) {
      probe.found = i;
      return probe;
    }
    probe.why = absl::StrFormat("%d GiB at %#x: %s", candidate.device_bytes / kGiB,
                                candidate.device_base, std::string(status.message()));
  }
  return probe;
}

}  // namespace torpor::executor
