#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "emulator/exec/program.h"
#include "emulator/exec/warp_context.h"

namespace torpor::emulator {

// One launch, shared by the threads that run its blocks.
struct KernelJob {
  std::string kernel;
  KernelCode code;
  bool resumable = false;        // the code; see KernelEntry
  bool reserved_shared = false;  // whether the system's part of shared memory is used
  // Whether warps may have to wait for each other. Unless the code is resumable, each of them then
  // needs a stack of its own.
  bool switches = false;
  // Whether blocks may wait for each other. Then threads take one block at a time, and where a
  // block waits they start others beside it: up to `share` at once, more if nobody else does.
  bool blocks_wait = false;
  std::uint32_t band = 1;  // rows of blocks that are run together, column after column
  LaunchConfig config;
  std::vector<std::uint8_t> parameters;
  const std::uint64_t* symbols = nullptr;
  std::uint32_t dynamic_shared_offset = 0;
  std::uint32_t shared_alignment = 1;
  std::uint64_t local_bytes_per_warp = 0;
  DeviceMemory* memory = nullptr;
  DeviceTraits traits;
  std::uint64_t grid_id = 0;
  std::uint64_t share = 1;
  std::uint64_t grid_workspace = 0;  // of a cooperative grid
  TimePoint start = {};
  std::vector<std::uint32_t> lane_tids;  // of each warp: x[32], y[32], z[32]

  std::uint32_t threads() const { return config.block.x * config.block.y * config.block.z; }
  std::uint32_t warps() const { return (threads() + kWarpLanes - 1) / kWarpLanes; }
  std::uint64_t blocks() const {
    return std::uint64_t{config.grid.x} * config.grid.y * config.grid.z;
  }
  void FillLaneTids();
  // Of the block that is to be run as number `index`.
  Dim3 Coordinates(std::uint64_t index) const {
    if (index < config.grid.x && band == 1) return {static_cast<std::uint32_t>(index), 0, 0};
    return CoordinatesInRows(index);
  }
  Dim3 CoordinatesInRows(std::uint64_t index) const;

  // What a block takes on one core: as the kernel's last launch found, or 0, then as this one did.
  Duration block_time = {};

  // Progress. A failure makes the threads abandon what is left.
  std::atomic<std::uint64_t> next_block = 0;
  unsigned helpers = 0;  // that run blocks now; guarded by the pool's mutex
  std::atomic<bool> failed = false;
  std::mutex mutex;
  std::optional<Failure<ExecError>> failure;  // the first one; guarded by mutex
  void Fail(Failure<ExecError> reason);
};

}  // namespace torpor::emulator
