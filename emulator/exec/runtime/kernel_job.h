#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "emulator/exec/interface/device_memory.h"
#include "emulator/exec/interface/exec_error.h"
#include "emulator/exec/interface/launch_config.h"
#include "emulator/exec/interface/warp_context.h"
#include "emulator/exec/runtime/launch_shape.h"

namespace torpor::emulator {

// Memory that the blocks of a launch see, and the layout of each block's own part.
struct JobMemory {
  std::vector<std::uint8_t> parameters;
  const std::uint64_t* symbols = nullptr;   // addresses of the module's variables
  std::uint32_t dynamic_shared_offset = 0;  // in a block's shared memory, in bytes
  std::uint32_t shared_alignment = 1;
  bool reserved_shared = false;  // whether the system's part of shared memory is used
  std::uint64_t local_bytes_per_warp = 0;
  DeviceMemory* device = nullptr;
  std::uint64_t grid_workspace = 0;  // of a cooperative grid; 0 for other grids
};

// How threads share the blocks of a launch.
struct JobSchedule {
  // Whether warps may have to wait for each other. Unless the code is resumable, each warp then
  // needs a stack of its own.
  bool switches = false;
  // Whether blocks of different clusters may wait for each other. If so, threads take one cluster
  // at a time, and start more beside a waiting one: up to `share` at once, more if no other thread
  // does.
  bool blocks_wait = false;
  std::uint64_t share = 1;
  TimePoint start = {};
  // Time of a cluster on one core: as the kernel's last launch found, or 0, then as this launch
  // did.
  Duration cluster_time = {};
};

// What the threads of a launch have done so far. A failure makes the threads abandon the blocks
// that are left.
struct JobProgress {
  std::atomic<std::uint64_t> next_cluster = 0;
  unsigned helpers = 0;  // running blocks now; guarded by the pool's mutex
  std::atomic<bool> failed = false;
  std::mutex mutex;
  std::optional<Failure<ExecError>> failure;  // the first one; guarded by mutex

  // Keeps the first reason. Thread-safe.
  void Fail(Failure<ExecError> reason);
};

// A launch, shared by all threads that run blocks of the grid. Lives until the last thread is done.
struct KernelJob {
  std::string kernel;
  KernelCode code;
  bool resumable = false;  // the code; see KernelEntry
  DeviceTraits traits;
  std::uint64_t grid_id = 0;
  LaunchShape shape;
  JobMemory memory;
  JobSchedule schedule;
  JobProgress progress;
};

}  // namespace torpor::emulator
