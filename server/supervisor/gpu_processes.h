#pragma once

#include <map>
#include <optional>

#include "server/supervisor/process_record.h"

namespace torpor::server {

// A GPU's processes, left by an earlier torpord.
struct GpuProcesses {
  // By their places (ExecutorSettings::place).
  std::map<int, ProcessIdentity> executors{};   // serve
  std::map<int, ProcessIdentity> spares{};      // at most one
  std::optional<ProcessIdentity> pool_owner{};  // none: the executor owns the GPU's memory

  bool empty() const { return executors.empty() && spares.empty() && !pool_owner; }

  bool operator==(const GpuProcesses&) const = default;
};

}  // namespace torpor::server
