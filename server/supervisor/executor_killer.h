#pragma once

#include <cstdint>

#include "base/ids.h"

namespace torpor::server {

// Ends executors' processes. A successor is started without being asked for. Thread-safe.
class ExecutorKiller {
 public:
  virtual ~ExecutorKiller() = default;
  // Ends the process of this epoch if it still runs. Does not block.
  virtual void Kill(GpuIndex gpu, std::uint64_t epoch) = 0;
};

}  // namespace torpor::server
