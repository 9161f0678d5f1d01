#pragma once

#include <grpcpp/grpcpp.h>
#include <sys/types.h>

#include <chrono>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/unix_socket/socket_acceptor.h"

namespace torpor::server {

// A server of gRPC on a Unix socket. Connections are accepted here, since gRPC 1.51 never accepts
// again once a process had no descriptors left (grpc/grpc issues 16058, 20418, 31080). Thread-safe.
class UnixGrpcServer {
 public:
  struct Options {
    mode_t mode = 0600;  // of the socket's file, whatever the umask
    // A connection without a call is closed after so long; 0: never.
    std::chrono::milliseconds idle_limit{};
    SocketAcceptor::Options accepting = {};
  };

  // Starts the builder's services at `path`. Replaces an existing file. InvalidArgument if the path
  // is too long, Unavailable if listening fails.
  static absl::StatusOr<std::unique_ptr<UnixGrpcServer>> Start(grpc::ServerBuilder& builder,
                                                               const std::string& path,
                                                               Options options);
  // Ends all calls at once.
  ~UnixGrpcServer();

  // Accepts nothing any more, waits for calls until `deadline`, and ends them. Once.
  void Shutdown(std::chrono::system_clock::time_point deadline);

 private:
  UnixGrpcServer(std::unique_ptr<grpc::Server> server, std::string path)
      : server_(std::move(server)), path_(std::move(path)) {}

  const std::unique_ptr<grpc::Server> server_;
  const std::string path_;
  std::unique_ptr<SocketAcceptor> acceptor_;  // null after Shutdown
};

}  // namespace torpor::server
