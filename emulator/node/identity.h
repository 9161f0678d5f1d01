#pragma once

#include <cstdint>
#include <string>

#include "emulator/node/topology.h"

// What programs can learn of a GPU's place in the node.
namespace torpor::emulator {

struct PciAddress {
  unsigned domain = 0;
  unsigned bus = 0;  // 0x20 and 0x21: two GPUs behind one switch; 0x30: one behind another
};
PciAddress PciAddressOf(const Topology& topology, unsigned place);
std::string ToText(PciAddress address);  // "0000:21:00.0"

// A number that differs where the way between the host and the GPU does.
std::uint32_t LinkSignature(const Topology& topology, unsigned place);

// How good the way between two GPUs is among all of the node: 0 is the best. More NVLinks are
// better than fewer, and these than none.
unsigned PeerRank(const Topology& topology, unsigned place, unsigned peer);

}  // namespace torpor::emulator
