#include "emulator/node/identity.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <optional>
#include <set>

namespace torpor::emulator {
namespace {

// A bus number has room for so many groups of kMaxGpusOfSwitch, the first being the host's own.
constexpr unsigned kGroupsOfDomain = 0x100 / kMaxGpusOfSwitch - 1;

// Whether two GPUs are behind one switch; a GPU without a switch is a group of its own.
bool SameGroup(const GpuSpec& a, const GpuSpec& b) {
  return a.place == b.place || (a.pcie_switch && a.pcie_switch == b.pcie_switch);
}

}  // namespace

// The GPUs of a group have consecutive buses from a multiple of 16 on, so that addresses tell which
// GPUs share a switch.
PciAddress PciAddressOf(const Topology& topology, unsigned place) {
  const GpuSpec& gpu = topology.gpus[place];
  unsigned group = 0;  // groups that begin before this GPU's does
  unsigned index = 0;  // GPUs before it in its own
  bool has_begun = false;
  for (unsigned i = 0; i < place; ++i) {
    const GpuSpec& other = topology.gpus[i];
    if (SameGroup(other, gpu)) {
      has_begun = true;
      ++index;
      continue;
    }
    const bool is_first =
        std::none_of(topology.gpus.begin(), topology.gpus.begin() + i,
                     [&](const GpuSpec& earlier) { return SameGroup(earlier, other); });
    if (is_first && !has_begun) ++group;
  }
  return {.domain = group / kGroupsOfDomain,
          .bus = (group % kGroupsOfDomain + 1) * kMaxGpusOfSwitch + index};
}

std::string ToText(PciAddress address) {
  char text[32];
  std::snprintf(text, sizeof(text), "%04x:%02x:00.0", address.domain, address.bus);
  return text;
}

// Hashes the numbers that determine the speed of the path to the host.
std::uint32_t LinkSignature(const Topology& topology, unsigned place) {
  const GpuSpec& gpu = topology.gpus[place];
  const double switch_gbps = gpu.pcie_switch ? topology.switches[*gpu.pcie_switch].gbps : 0;
  std::uint32_t hash = 2166136261;  // FNV-1a
  for (const double number :
       {gpu.pcie_gbps, gpu.copy_us, gpu.pageable_gbps, switch_gbps, topology.time_scale}) {
    for (std::uint64_t bits = std::bit_cast<std::uint64_t>(number), i = 0; i < 8; ++i) {
      hash = (hash ^ static_cast<std::uint8_t>(bits >> 8 * i)) * 16777619;
    }
  }
  return hash;
}

// Counts the distinct numbers of links that are better than this pair's.
unsigned PeerRank(const Topology& topology, unsigned place, unsigned peer) {
  const unsigned links = topology.nvlinks.Between(place, peer);
  std::set<unsigned> better;
  for (const GpuSpec& a : topology.gpus) {
    for (const GpuSpec& b : topology.gpus) {
      const unsigned others = topology.nvlinks.Between(a.place, b.place);
      if (others > links) better.insert(others);
    }
  }
  return static_cast<unsigned>(better.size());
}

}  // namespace torpor::emulator
