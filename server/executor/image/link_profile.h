#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "memory/bandwidth_curve.h"
#include "server/executor/gpu/device.h"

namespace torpor::executor {

// The way to a GPU from the host's pinned memory or from another GPU. Another of any of these is
// another link.
struct LinkIdentity {
  std::string uuid;  // of the GPU
  std::string pci_bus_id;
  std::int32_t driver_version = 0;
  std::string source_uuid = {};  // of the other GPU; empty: the host
  std::string source_pci_bus_id = {};
};
LinkIdentity LinkOf(const DeviceProperties& device);
LinkIdentity LinkBetween(const DeviceProperties& source, const DeviceProperties& device);

// Sizes ascend; rates are to the GPU.
using BandwidthCurve = std::vector<memory::BandwidthPoint>;

// A link's curve as text, to be kept in a file.
std::string EncodeLinkProfile(const LinkIdentity& link, const BandwidthCurve& curve);
// The curve of just this link in any bytes. InvalidArgument if they are no profile,
// FailedPrecondition if it is another link's.
absl::StatusOr<BandwidthCurve> DecodeLinkProfile(std::string_view text, const LinkIdentity& link);

// Measures the host's link, which should be idle, by copies to memory that is allocated for that
// and given back; takes a third of a second, or less.
absl::StatusOr<BandwidthCurve> MeasureLink(const Device& device);

// The link's curve from its file in `folder`, which exists; else it is measured and kept there. Of
// the executors that share the folder one measures at a time: Unavailable if the others take
// seconds. An empty folder keeps nothing.
absl::StatusOr<BandwidthCurve> ProfileLink(const Device& device, const std::string& folder);

// The GPUs `peers`, whose memory the device reaches, the one with the fastest link to it first;
// those that are about as fast stay in their order. The links are measured, or known, as the host's
// is; for a moment that takes a few MiB of each GPU. An error if one of them cannot be measured.
absl::StatusOr<std::vector<int>> RankPeers(const Device& device, const std::vector<int>& peers,
                                           const std::string& folder);
// The same by known rates, in bytes a second.
struct PeerRate {
  int peer = 0;
  double bytes_per_second = 0;
};
std::vector<int> RankByRate(std::vector<PeerRate> rates);

}  // namespace torpor::executor
