#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "server/settings/setting.h"

namespace torpor::server {

// The addresses that a node sets aside for all sessions together, the same in every process: GPU
// addresses, then addresses of pinned host memory. Sessions own whole segments of both, and all
// offsets into memory files count from the begin of a range.
struct NodeAddresses {
  std::uint64_t device_base = 0;
  Bytes device_bytes = 0;
  std::uint64_t host_base = 0;
  Bytes host_bytes = 0;

  bool operator==(const NodeAddresses&) const = default;
};

// Less than this is not worth a reservation, where programs leave more.
inline constexpr Bytes kMinNodeAddresses = 1024 * kGiB;

// Returns the least whole chunks of 1 GiB or more whose block states are whole pages.
Bytes DeviceSegmentBytes(Bytes chunk_bytes);
inline constexpr Bytes kHostSegmentBytes = 64 * kMiB;
// Places in tenants' files are given to tenants in whole segments.
inline constexpr Bytes kTenantSegmentBytes = 1 * kGiB;

// Returns the layouts to try, the best first: `bytes` of GPU addresses from `base` on, then the
// same elsewhere, then half as much, and so on to kMinNodeAddresses. All lie below the addresses
// of programs, heaps and libraries on x86-64 Linux. Empty only if `bytes` is less than
// kMinNodeAddresses. A `base` that ThreadSanitizer leaves to programs gives one layout at most, as
// large as fits.
std::vector<NodeAddresses> AddressCandidates(std::uint64_t base, Bytes bytes);

// The table of NodeAddresses, which executors get from torpord, in the order of help.
const Settings<NodeAddresses>& NodeAddressTable();

}  // namespace torpor::server
