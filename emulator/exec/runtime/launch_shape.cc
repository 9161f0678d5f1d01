#include "emulator/exec/runtime/launch_shape.h"

#include <algorithm>

namespace torpor::emulator {

// Counts %tid up from thread to thread; lanes behind the last thread get numbers, too.
void LaunchShape::FillLaneTids() {
  lane_tids.resize(std::size_t{3} * kWarpLanes * warps());
  const Dim3& block = config.block;
  std::uint32_t x = 0;
  std::uint32_t y = 0;
  std::uint32_t z = 0;
  for (std::uint32_t thread = 0; thread < warps() * kWarpLanes; ++thread) {
    std::uint32_t* const row =
        &lane_tids[std::size_t{thread / kWarpLanes} * 3 * kWarpLanes + thread % kWarpLanes];
    row[0] = x;
    row[kWarpLanes] = y;
    row[std::size_t{2} * kWarpLanes] = z;
    if (++x < block.x) continue;
    x = 0;
    if (++y < block.y) continue;
    y = 0;
    ++z;
  }
}

Dim3 LaunchShape::ClusterGrid() const {
  return {config.grid.x / config.cluster.x, config.grid.y / config.cluster.y,
          config.grid.z / config.cluster.z};
}

Dim3 LaunchShape::InRows(std::uint64_t index, const Dim3& grid) {
  const std::uint64_t row = index / grid.x;
  return {static_cast<std::uint32_t>(index % grid.x), static_cast<std::uint32_t>(row % grid.y),
          static_cast<std::uint32_t>(row / grid.y)};
}

// Within a band of rows, goes down the columns; the last band of a plane may be lower.
Dim3 LaunchShape::CoordinatesInRows(std::uint64_t index) const {
  const Dim3& grid = config.grid;
  if (band == 1) return InRows(index, grid);
  const std::uint64_t plane = std::uint64_t{grid.x} * grid.y;
  const std::uint64_t band_blocks = std::uint64_t{grid.x} * band;
  const auto first = static_cast<std::uint32_t>(index % plane / band_blocks * band);
  const std::uint64_t in_band = index % plane % band_blocks;
  const std::uint32_t rows = std::min(band, grid.y - first);
  return {static_cast<std::uint32_t>(in_band / rows),
          static_cast<std::uint32_t>(first + in_band % rows),
          static_cast<std::uint32_t>(index / plane)};
}

}  // namespace torpor::emulator
