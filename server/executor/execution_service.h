#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "proto/torpor/v1/transport.grpc.pb.h"
#include "server/executor/gpu/device.h"
#include "server/executor/session/session_registry.h"
#include "server/unix_socket/grpc_server.h"
#include "server/unix_socket/silent_streams.h"

namespace torpor::executor {

// Serves the sessions' streams. Each stream has its own thread, which executes the session's
// batches and writes the replies, so that a synchronous call waits for no other thread.
class ExecutionService final : public v1::Execution::Service {
 public:
  // Streams that have not shown a session's key: each holds a thread.
  static constexpr std::size_t kMostSilent = 64;

  // `device` and `registry` must outlive the server. Refuses all streams unless `is_offered`.
  ExecutionService(const Device& device, SessionRegistry& registry, bool is_offered = true)
      : device_(device), registry_(registry), is_offered_(is_offered) {}

  // An exception ends the process: gRPC would swallow it, and leave the session half served.
  grpc::Status Run(grpc::ServerContext* context,
                   grpc::ServerReaderWriter<v1::Frame, v1::Frame>* stream) noexcept override;

 private:
  // Reads the stream's first message and attaches the session of that message.
  absl::StatusOr<Session*> Attach(grpc::ServerContext* context,
                                  grpc::ServerReaderWriter<v1::Frame, v1::Frame>* stream);

  const Device& device_;
  SessionRegistry& registry_;
  const bool is_offered_;
  server::SilentStreams silent_{kMostSilent};
};

// Serves `service` on a Unix socket at `path`, replacing an existing file. Returns an error if the
// server cannot listen.
absl::StatusOr<std::unique_ptr<server::UnixGrpcServer>> Serve(ExecutionService& service,
                                                              const std::string& path, mode_t mode);

}  // namespace torpor::executor
