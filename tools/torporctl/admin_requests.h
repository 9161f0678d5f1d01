#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"

// Administrator's requests of `torporctl load`, `evict`, `pin`, `unpin` and `checkpoint`. They
// return when carried out, or with the daemon's reason why not.
namespace torpor::torporctl {

// Brings the function's memory to `gpu`, or to any GPU. Waits for memory in use by running
// functions.
absl::Status Load(const std::string& admin_socket, const std::string& function,
                  std::optional<int> gpu);

// Takes the function's memory off the GPUs. Returns FailedPrecondition for a busy function.
absl::Status Evict(const std::string& admin_socket, const std::string& function);

// Pins or unpins the function's memory: the eviction takes pinned memory last.
absl::Status Pin(const std::string& admin_socket, const std::string& function, bool is_pinned);

// Writes the function's changed GPU memory back to its image.
absl::Status Checkpoint(const std::string& admin_socket, const std::string& function);

}  // namespace torpor::torporctl
