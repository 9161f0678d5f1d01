#pragma once

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "server/config/config.h"

namespace torpor::server {

// The daemon's claim on its folder of sockets. While it lives no other torpord uses the folder;
// a lock of the kernel, so that a killed daemon leaves no claim behind.
class RunFolder {
 public:
  // Creates the folders that the configuration names, claims the run folder and removes the
  // sockets of a dead daemon. AlreadyExists where another torpord lives there.
  static absl::StatusOr<RunFolder> Claim(const Config& config);

 private:
  explicit RunFolder(UniqueFd lock) : lock_(std::move(lock)) {}

  UniqueFd lock_;
};

}  // namespace torpor::server
