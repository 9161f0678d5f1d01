#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"

// What `torporctl load`, `evict`, `pin`, `unpin` and `checkpoint` ask of the daemon. They return
// when it is as asked for, or with the daemon's word why it is not.
namespace torpor::torporctl {

absl::Status Load(const std::string& admin_socket, const std::string& function,
                  std::optional<int> gpu);
absl::Status Evict(const std::string& admin_socket, const std::string& function);
absl::Status Pin(const std::string& admin_socket, const std::string& function, bool is_pinned);
absl::Status Checkpoint(const std::string& admin_socket, const std::string& function);

}  // namespace torpor::torporctl
