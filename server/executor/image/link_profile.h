#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/files.h"
#include "memory/bandwidth_curve.h"
#include "server/executor/gpu/device.h"

namespace torpor::executor {

// Identifies the path to a GPU from the host's pinned memory or from another GPU. Links are the
// same only if all fields are equal.
struct LinkIdentity {
  std::string uuid;  // of the GPU
  std::string pci_bus_id;
  std::int32_t driver_version = 0;
  std::string source_uuid = {};  // the other GPU; empty for the host
  std::string source_pci_bus_id = {};
};
LinkIdentity LinkOf(const DeviceProperties& device);
LinkIdentity LinkBetween(const DeviceProperties& source, const DeviceProperties& device);

// Copy rate by size, ascending by size, towards the GPU.
using BandwidthCurve = std::vector<memory::BandwidthPoint>;

// Encodes a link's curve as text for a file.
std::string EncodeLinkProfile(const LinkIdentity& link, const BandwidthCurve& curve);
// Decodes the curve of `link` from untrusted bytes. InvalidArgument if the text is no profile;
// FailedPrecondition if the profile belongs to another link.
absl::StatusOr<BandwidthCurve> DecodeLinkProfile(std::string_view text, const LinkIdentity& link);

// A profile in a file. Replaced as a whole, and then on the disk. Errors are as Files' and as
// DecodeLinkProfile's.
absl::StatusOr<BandwidthCurve> ReadLinkProfile(Files& files, const std::string& path,
                                               const LinkIdentity& link);
absl::Status WriteLinkProfile(Files& files, const std::string& path, const LinkIdentity& link,
                              const BandwidthCurve& curve);

// Measures the host's link, which should be idle, with copies to temporarily allocated memory.
// Takes at most a third of a second.
absl::StatusOr<BandwidthCurve> MeasureLink(const Device& device);

// Reads the link's curve from `folder`, which must exist, or measures and stores the curve.
// Executors that share the folder take turns at measuring: Unavailable if the wait exceeds a few
// seconds. An empty `folder` stores nothing.
absl::StatusOr<BandwidthCurve> ProfileLink(const Device& device, const std::string& folder);

// Sorts `peers`, whose memory the device reaches, by the rate of the link to `device`, fastest
// first; peers of about equal rate keep their order. Measures or reads rates like ProfileLink,
// using a few MiB of each GPU for a moment. Returns an error if a link cannot be measured.
absl::StatusOr<std::vector<int>> RankPeers(const Device& device, const std::vector<int>& peers,
                                           const std::string& folder);
// Like RankPeers, for known rates.
struct PeerRate {
  int peer = 0;
  double bytes_per_second = 0;
};
std::vector<int> RankByRate(std::vector<PeerRate> rates);

}  // namespace torpor::executor
