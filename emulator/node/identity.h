#pragma once

#include <cstdint>
#include <string>

#include "emulator/node/topology.h"

// Identities that programs can query of a GPU in the node.
namespace torpor::emulator {

struct PciAddress {
  unsigned domain = 0;
  unsigned bus = 0;  // 0x20 and 0x21: two GPUs behind one switch; 0x30: one behind another
};
// `place` is the GPU's index in the topology, here and below.
PciAddress PciAddressOf(const Topology& topology, unsigned place);
std::string ToText(PciAddress address);  // "0000:21:00.0"

// Returns a number that depends on the path between the host and the GPU, such as its rates.
std::uint32_t LinkSignature(const Topology& topology, unsigned place);

// Ranks the path between two GPUs among all paths of the node; 0 is the best. More NVLinks are
// better than fewer, and NVLinks are better than PCIe.
unsigned PeerRank(const Topology& topology, unsigned place, unsigned peer);

}  // namespace torpor::emulator
