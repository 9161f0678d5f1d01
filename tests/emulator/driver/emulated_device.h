#pragma once

#include <memory>
#include <utility>

#include "emulator/driver/device/device.h"
#include "emulator/node/node_file.h"

namespace torpor::emulator {

// One GPU of a node that no other process shares, without a Driver.
struct EmulatedDevice {
  std::unique_ptr<NodeFile> node = std::move(NodeFile::Private()).value();
  Topology topology = OneGpu();
  AddressSpace space;
  DriverDevice device{0, topology.gpus.front(), topology, *node, space};

 private:
  static Topology OneGpu() {
    Topology topology;
    topology.gpus.emplace_back().memory = 64 * kMiB;
    return topology;
  }
};

}  // namespace torpor::emulator
