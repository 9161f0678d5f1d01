#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"

// Administrator's requests of `torporctl load`, `evict`, `pin`, `unpin` and `checkpoint`. They
// return when carried out, or with the daemon's reason why not.
namespace torpor::torporctl {

absl::Status Load(const std::string& admin_socket, const std::string& function,
                  std::optional<int> gpu);
absl::Status Evict(const std::string& admin_socket, const std::string& function);
absl::Status Pin(const std::string& admin_socket, const std::string& function, bool is_pinned);
absl::Status Checkpoint(const std::string& admin_socket, const std::string& function);

}  // namespace torpor::torporctl
