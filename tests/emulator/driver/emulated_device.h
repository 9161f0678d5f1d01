#pragma once

#include <memory>
#include <utility>

#include "emulator/driver/device/device.h"
#include "emulator/node/node_file.h"

namespace torpor::emulator {

// One GPU of a node that no other process shares, without a Driver.
struct EmulatedDevice {
  explicit EmulatedDevice(const Strictness& strict = {}) : topology(OneGpu(strict)) {}

  std::unique_ptr<NodeFile> node = std::move(NodeFile::Private()).value();
  Topology topology;
  AddressSpace space;
  DriverDevice device{0, topology.gpus.front(), topology, *node, space};

 private:
  static Topology OneGpu(const Strictness& strict) {
    Topology topology;
    topology.strict = strict;
    topology.gpus.emplace_back().memory = 64 * kMiB;
    return topology;
  }
};

}  // namespace torpor::emulator
