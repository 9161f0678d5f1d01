#pragma once

#include <sys/types.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace torpor::server {

// Returns InvalidArgument if the path is too long for a Unix socket.
absl::Status CheckSocketPath(const std::string& path);

// Returns a listening socket (`type` as socket(2): SOCK_SEQPACKET, ...) at `path`, with the file's
// mode set before a peer can connect. Replaces an existing file. Errors: InvalidArgument for a long
// path, else of errno.
absl::StatusOr<UniqueFd> ListenOnUnixSocket(const std::string& path, int type, mode_t mode);

// Whether a process listens on the stream socket at `path`.
bool IsListening(const std::string& path);

}  // namespace torpor::server
