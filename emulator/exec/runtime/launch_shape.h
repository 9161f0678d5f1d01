#pragma once

#include <cstdint>
#include <vector>

#include "emulator/exec/interface/launch_config.h"
#include "emulator/exec/interface/warp_context.h"

namespace torpor::emulator {

// Extents of a launch and the order of the blocks. Many threads read the shape once the launch has
// started.
struct LaunchShape {
  LaunchConfig config;            // with the size of clusters, 1x1x1 if there are none
  bool explicit_cluster = false;  // %is_explicit_cluster
  // Rows of blocks that run together, column after column; 1: row after row.
  std::uint32_t band = 1;
  std::vector<std::uint32_t> lane_tids;  // of each warp: x[32], y[32], z[32]

  std::uint32_t threads() const { return config.block.x * config.block.y * config.block.z; }
  std::uint32_t warps() const { return (threads() + kWarpLanes - 1) / kWarpLanes; }
  std::uint64_t blocks() const {
    return std::uint64_t{config.grid.x} * config.grid.y * config.grid.z;
  }
  // Blocks of a cluster; 1 in a grid without clusters.
  std::uint32_t cluster_blocks() const {
    return config.cluster.x * config.cluster.y * config.cluster.z;
  }
  std::uint64_t clusters() const { return blocks() / cluster_blocks(); }
  // Computes lane_tids from config.block.
  void FillLaneTids();
  // Returns %clusterid of cluster number `index` in the order of running; `index` is below
  // clusters().
  Dim3 ClusterCoordinates(std::uint64_t index) const {
    return cluster_blocks() == 1 ? Coordinates(index) : InRows(index, ClusterGrid());
  }
  // Returns %nclusterid.
  Dim3 ClusterGrid() const;
  // Returns %cluster_ctaid of the block of this rank.
  Dim3 PlaceInCluster(std::uint32_t rank) const { return InRows(rank, config.cluster); }

 private:
  // Returns %ctaid of block number `index` in the order of running; `index` is below blocks().
  Dim3 Coordinates(std::uint64_t index) const {
    if (index < config.grid.x && band == 1) return {static_cast<std::uint32_t>(index), 0, 0};
    return CoordinatesInRows(index);
  }
  Dim3 CoordinatesInRows(std::uint64_t index) const;
  // Returns the place of number `index` in a grid of this size, row after row.
  static Dim3 InRows(std::uint64_t index, const Dim3& grid);
};

}  // namespace torpor::emulator
