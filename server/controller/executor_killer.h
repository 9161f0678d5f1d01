#pragma once

#include <cstdint>

#include "base/ids.h"

namespace torpor::server {

// Whoever can end an executor's process; a successor is started by itself.
class ExecutorKiller {
 public:
  virtual ~ExecutorKiller() = default;
  // Ends the process of this epoch, if it still runs. Does not block.
  virtual void Kill(GpuIndex gpu, std::uint64_t epoch) = 0;
};

}  // namespace torpor::server
