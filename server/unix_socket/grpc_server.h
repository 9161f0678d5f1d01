#pragma once

#include <grpcpp/grpcpp.h>
#include <sys/types.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace torpor::server {

// Starts what `builder` has been told to serve, on a Unix socket at `path` with the file's mode
// (which narrows or widens what the umask gave it). A file that is already there is replaced.
// InvalidArgument if the path is too long, Unavailable where it cannot be listened on.
absl::StatusOr<std::unique_ptr<grpc::Server>> ServeOnUnixSocket(grpc::ServerBuilder& builder,
                                                                const std::string& path,
                                                                mode_t mode);

}  // namespace torpor::server
