#pragma once

#include <grpcpp/grpcpp.h>
#include <sys/types.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace torpor::server {

// Starts the builder's services on a Unix socket at `path`, with this file mode whatever the umask.
// Replaces an existing file. InvalidArgument if the path is too long, Unavailable if listening
// fails.
absl::StatusOr<std::unique_ptr<grpc::Server>> ServeOnUnixSocket(grpc::ServerBuilder& builder,
                                                                const std::string& path,
                                                                mode_t mode);

}  // namespace torpor::server
