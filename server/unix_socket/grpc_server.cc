#include "server/unix_socket/grpc_server.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/unix_socket/unix_listener.h"

namespace torpor::server {

absl::StatusOr<std::unique_ptr<grpc::Server>> ServeOnUnixSocket(grpc::ServerBuilder& builder,
                                                                const std::string& path,
                                                                mode_t mode) {
  TORPOR_RETURN_IF_ERROR(CheckSocketPath(path));
  unlink(path.c_str());
  builder.AddListeningPort(absl::StrCat("unix:", path), grpc::InsecureServerCredentials());
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", path, "; is its folder there and writable?"));
  }
  if (chmod(path.c_str(), mode) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot set the mode of ", path));
  }
  return server;
}

}  // namespace torpor::server
