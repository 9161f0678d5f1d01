#pragma once

namespace torpor::e2e {

// A topology for long runs with many functions. 24 MiB of each GPU are for images: far fewer fit
// than there are functions. Links as the paper's node has them, slow enough for a small computer.
inline constexpr const char* kFourSmallGpus = R"(version: v1
pcie_switches:
  - {name: left, gbps: 4}
  - {name: right, gbps: 4}
gpus:
  - {memory: 32MiB, pcie_gbps: 3, pcie_switch: left, count: 2}
  - {memory: 32MiB, pcie_gbps: 3, pcie_switch: right, count: 2}
nvlinks:
  gbps_per_link: 4
  matrix:
    - [0, 1, 1, 2]
    - [1, 0, 2, 1]
    - [1, 2, 0, 2]
    - [2, 1, 2, 0]
)";

}  // namespace torpor::e2e
