#include "server/settings/node_addresses.h"

#include <algorithm>
#include <array>

#include "memory/block_states.h"
#include "proto/wire/descriptor_socket.h"
#include "server/settings/value_kinds.h"

namespace torpor::server {
namespace {

// Position-independent programs are loaded from 0x5500'0000'0000 on.
constexpr std::uint64_t kEnd = 0x5400'0000'0000;
// ThreadSanitizer leaves programs the addresses below, and some far above.
constexpr std::uint64_t kLowEnd = 0x80'0000'0000;
// Begins to try after the configured one, where drivers and allocators rarely place anything.
constexpr std::array<std::uint64_t, 4> kOtherBases = {0x2000'0000'0000, 0x3000'0000'0000,
                                                      0x1000'0000'0000, 0x0800'0000'0000};
constexpr Bytes kPage = 4 * kKiB;

constexpr NodeAddresses At(std::uint64_t base, Bytes bytes) {
  return {
      .device_base = base, .device_bytes = bytes, .host_base = base + bytes, .host_bytes = bytes};
}

bool Fits(std::uint64_t base, Bytes bytes) { return base < kEnd && bytes <= (kEnd - base) / 2; }

}  // namespace

Bytes DeviceSegmentBytes(Bytes chunk_bytes) {
  constexpr Bytes kImageBytesPerStatePage =
      kPage / memory::BlockStates::kBytesPerBlock * wire::kImageBlockBytes;
  Bytes unit = chunk_bytes;
  while (unit % kImageBytesPerStatePage != 0) unit *= 2;
  return RoundUp(kGiB, unit);
}

std::vector<NodeAddresses> AddressCandidates(std::uint64_t base, Bytes bytes) {
  std::vector<NodeAddresses> candidates;
  if (base < kLowEnd) {
    const Bytes size = std::min(bytes, RoundDown((kLowEnd - base) / 2, kGiB));
    if (size > 0) candidates.push_back(At(base, size));
    return candidates;
  }
  const auto add = [&candidates](std::uint64_t at, Bytes size) {
    if (!Fits(at, size)) return;
    if (std::ranges::find(candidates, At(at, size)) == candidates.end()) {
      candidates.push_back(At(at, size));
    }
  };
  for (Bytes size = bytes; size >= kMinNodeAddresses; size = RoundDown(size / 2, kGiB)) {
    add(base, size);
    for (const std::uint64_t other : kOtherBases) add(other, size);
  }
  return candidates;
}

const Settings<NodeAddresses>& NodeAddressTable() {
  using Target = NodeAddresses;
  static const Settings<Target> table = {
      Required(MakeSetting("device_address_base", NumberKind(), &Target::device_base,
                           "Where the node's GPU addresses for sessions begin")),
      Required(MakeSetting("device_address_bytes", SizeKind{.min = kGiB}, &Target::device_bytes,
                           "How many there are")),
      Required(MakeSetting("host_address_base", NumberKind(), &Target::host_base,
                           "Where the node's addresses of pinned host memory begin")),
      Required(MakeSetting("host_address_bytes", SizeKind{.min = kGiB}, &Target::host_bytes,
                           "How many there are")),
  };
  return table;
}

}  // namespace torpor::server
