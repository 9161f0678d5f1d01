#pragma once

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "server/config/config.h"

namespace torpor::server {

// The daemon's claim on its folder of sockets: excludes other daemons from the folder. A kernel
// lock, so that a killed daemon leaves no claim behind.
class RunFolder {
 public:
  // Creates the configured folders, those of sockets with their modes and groups, claims the run
  // folder and removes the sockets of a dead daemon. AlreadyExists if another torpord runs there.
  // PermissionDenied if others could replace sockets in their folders.
  static absl::StatusOr<RunFolder> Claim(const Config& config);

 private:
  explicit RunFolder(UniqueFd lock) : lock_(std::move(lock)) {}

  UniqueFd lock_;
};

}  // namespace torpor::server
