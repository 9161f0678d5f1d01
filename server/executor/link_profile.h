#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "memory/bandwidth_curve.h"
#include "server/executor/device.h"

namespace torpor::executor {

// The way between the host's pinned memory and a GPU. Another of any of these is another link.
struct LinkIdentity {
  std::string uuid;  // of the GPU
  std::string pci_bus_id;
  std::int32_t driver_version = 0;
};
LinkIdentity LinkOf(const DeviceProperties& device);

// Sizes ascend; rates are from the host to the GPU.
using BandwidthCurve = std::vector<memory::BandwidthPoint>;

// A link's curve as text, to be kept in a file.
std::string EncodeLinkProfile(const LinkIdentity& link, const BandwidthCurve& curve);
// The curve of just this link in any bytes. InvalidArgument if they are no profile,
// FailedPrecondition if it is another link's.
absl::StatusOr<BandwidthCurve> DecodeLinkProfile(std::string_view text, const LinkIdentity& link);

// Measures the link, which should be idle, by copies to memory that is allocated for that and given
// back; takes a third of a second, or less.
absl::StatusOr<BandwidthCurve> MeasureLink(const Device& device);

// The link's curve from its file in `folder`, which exists; else it is measured and kept there. Of
// the executors that share the folder one measures at a time: Unavailable if the others take
// seconds. An empty folder keeps nothing.
absl::StatusOr<BandwidthCurve> ProfileLink(const Device& device, const std::string& folder);

}  // namespace torpor::executor
