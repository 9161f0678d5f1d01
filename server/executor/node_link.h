#pragma once

#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "proto/torpor/v1/node.grpc.pb.h"
#include "server/executor/executor_loop.h"

namespace torpor::executor {

// The executor's stream to torpord. Register goes first; what torpord says is posted to the loop,
// and so is the end of the stream.
class NodeLink final : public DaemonUplink {
 public:
  // Dials torpord's node socket. The stream is not open yet: the loop hears whether it opens.
  explicit NodeLink(const std::string& socket_path);
  ~NodeLink() override;

  // Opens the stream with `registration` and starts to listen. Once, before the first Send.
  void Start(const v1::ExecutorMessage& registration, ExecutorLoop& loop);

  void Send(const v1::ExecutorMessage& message) override;

  // Waits, for a moment at most, until torpord has read what was sent; then ends the stream.
  void Finish();

 private:
  const std::unique_ptr<v1::Node::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::ExecutorMessage, v1::DaemonMessage>> stream_;
  std::thread listener_;
  std::atomic<bool> ended_{false};
};

}  // namespace torpor::executor
