#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "proto/torpor/v1/transport.grpc.pb.h"
#include "tests/server/executor/session/batch_builder.h"

namespace torpor::executor {

// A session's stream to an executor, as the shim has one.
class TestClient {
 public:
  explicit TestClient(const std::string& socket_path);

  // The reply, or nothing if the stream ended.
  std::optional<wire::Reply> Attach(std::uint64_t session, const std::array<std::uint8_t, 16>& key);
  // Sends a batch that wants one reply.
  std::optional<wire::Reply> Call(const BatchBuilder& batch, std::uint64_t lease);
  bool Send(const std::vector<std::uint8_t>& frame);
  // The next answer; what kernels print before it is dropped.
  std::optional<wire::Reply> Receive();
  // Ends the stream and gives its status.
  grpc::Status Finish();

 private:
  std::unique_ptr<v1::Execution::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::Frame, v1::Frame>> stream_;
};

}  // namespace torpor::executor
