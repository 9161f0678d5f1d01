#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/units.h"
#include "server/executor/executor_loop.h"
#include "server/executor/image/image_backing.h"
#include "server/executor/image/swap_options.h"

namespace torpor::executor {

// What the command line says.
struct ExecutorOptions {
  int gpu = -1;
  std::uint64_t epoch = 0;
  std::string daemon_socket;
  std::string socket;
  mode_t socket_mode = 0600;
  std::string descriptor_socket;
  std::string module_dir;
  std::string cuda_library_dir;
  Bytes driver_reserve = 1 * kGiB;
  Bytes pool_bytes = 0;  // 0: all but the reserve
  Bytes chunk_bytes = 2 * kMiB;
  AddressMode address_mode = AddressMode::kMap;
  std::optional<std::vector<Bytes>> partition_sizes;  // see ArenaMemory::Create
  SwapOptions swap;
  bool measures_link = true;     // for swap.group_bytes; and other GPUs' links, to rank them
  std::string link_profile_dir;  // where that is kept; empty: nowhere
};

// Owns the GPU until there is a reason to end, and then ends the process with an ExitStatus.
// Returns only if it could not start.
absl::Status RunExecutor(const ExecutorOptions& options);

}  // namespace torpor::executor
