#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace torpor::server {

// Lets this thread, and threads to come, open the given files alone (Landlock), start no program,
// and trace no process. Files that are open stay so. Requires no_new_privs. Unavailable if the
// kernel has no Landlock.
absl::Status RestrictFiles(const std::vector<std::string>& readable,
                           const std::vector<std::string>& writable);

}  // namespace torpor::server
