#pragma once

#include <optional>

#include "server/supervisor/process_record.h"

namespace torpor::server {

// A GPU's processes, left by an earlier torpord.
struct GpuProcesses {
  std::optional<ProcessIdentity> executor{};  // serves
  std::optional<ProcessIdentity> spare{};
  std::optional<ProcessIdentity> pool_owner{};  // none: the executor owns the GPU's memory
  int place = 0;  // the executor's, dead or alive; the spare has the other one

  bool operator==(const GpuProcesses&) const = default;
};

}  // namespace torpor::server
