#pragma once

#include <functional>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace torpor::executor {

// Returns a descriptor that is readable once the process has ended that connected to this end of a
// Unix socket's `connection`.
using WatchProcess = std::function<absl::StatusOr<UniqueFd>(int connection)>;

// WatchProcess by the process's pidfd. The process is alive, or has sent something just now, so
// that the pid is no other's yet.
absl::StatusOr<UniqueFd> OpenHolderProcess(int connection);

}  // namespace torpor::executor
