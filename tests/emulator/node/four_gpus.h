#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "emulator/node/node_file.h"
#include "emulator/node/topology.h"

namespace torpor::emulator {

// The paper's node: two switches of two GPUs each, NVLinks between all.
inline Topology FourGpus() {
  Topology topology;
  topology.switches = {{"left", 13}, {"right", 13}};
  for (unsigned place = 0; place < 4; ++place) {
    GpuSpec gpu;
    gpu.place = place;
    gpu.memory = kGiB;
    gpu.pcie_gbps = 12;
    gpu.pcie_switch = place / 2;
    topology.gpus.push_back(gpu);
  }
  topology.nvlinks.gbps_per_link = 25;
  topology.nvlinks.links = {{0, 1, 1, 2}, {1, 0, 2, 1}, {1, 2, 0, 2}, {2, 1, 2, 0}};
  return topology;
}

// A node of this process alone, in which nothing has happened.
class PrivateNode {
 public:
  PrivateNode() : node_(NodeFile::Private()) { EXPECT_TRUE(node_.ok()); }
  SharedNodeState& state() { return (*node_)->state(); }

 private:
  NodeResult<std::unique_ptr<NodeFile>> node_;
};

}  // namespace torpor::emulator
