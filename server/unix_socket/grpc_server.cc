#include "server/unix_socket/grpc_server.h"

#include <grpcpp/server_posix.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/unix_socket/unix_listener.h"

namespace torpor::server {
absl::StatusOr<std::unique_ptr<UnixGrpcServer>> UnixGrpcServer::Start(grpc::ServerBuilder& builder,
                                                                      const std::string& path,
                                                                      Options options) {
  TORPOR_RETURN_IF_ERROR(CheckSocketPath(path));
  if (options.idle_limit.count() > 0) {
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS,
                               static_cast<int>(options.idle_limit.count()));
  }
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return absl::InternalError(absl::StrCat("no gRPC server for ", path));
  absl::StatusOr<UniqueFd> listener = ListenOnUnixSocket(path, SOCK_STREAM, options.mode);
  if (!listener.ok()) {
    return absl::UnavailableError(absl::StrCat(std::string(listener.status().message()),
                                               "; is its folder there and writable?"));
  }
  options.accepting.name = path;
  std::unique_ptr<UnixGrpcServer> started(new UnixGrpcServer(std::move(server), path));
  grpc::Server* const target = started->server_.get();
  TORPOR_ASSIGN_OR_RETURN(started->acceptor_,
                          SocketAcceptor::Start(*std::move(listener), std::move(options.accepting),
                                                [target](UniqueFd connection) {
                                                  grpc::AddInsecureChannelFromFd(
                                                      target, connection.Release());
                                                }));
  return started;
}

UnixGrpcServer::~UnixGrpcServer() {
  if (acceptor_ != nullptr) Shutdown(std::chrono::system_clock::now());
}

void UnixGrpcServer::Shutdown(std::chrono::system_clock::time_point deadline) {
  if (acceptor_ == nullptr) return;
  acceptor_.reset();
  unlink(path_.c_str());
  server_->Shutdown(deadline);
}

}  // namespace torpor::server
