#pragma once

#include <sys/types.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace torpor::server {

// InvalidArgument if the path is too long for a Unix socket.
absl::Status CheckSocketPath(const std::string& path);

// A listening socket (`type` as socket(2): SOCK_SEQPACKET, ...) at `path`, with the file's mode
// set before anybody can connect. A file that is already there is replaced.
absl::StatusOr<UniqueFd> ListenOnUnixSocket(const std::string& path, int type, mode_t mode);

}  // namespace torpor::server
