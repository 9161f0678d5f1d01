#pragma once

#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "proto/torpor/v1/node.grpc.pb.h"
#include "server/executor/executor_loop.h"

namespace torpor::executor {

// The executor's stream to torpord. Sends Register first; posts torpord's messages and the end of
// the stream to the loop, from a listener thread.
class NodeLink final : public DaemonUplink {
 public:
  // Dials torpord's node socket without opening the stream; the loop learns whether opening
  // succeeds.
  explicit NodeLink(const std::string& socket_path);
  ~NodeLink() override;

  // Opens the stream with `registration` and starts the listener. Call once, before the first Send.
  void Start(const v1::ExecutorMessage& registration, ExecutorLoop& loop);

  void Send(const v1::ExecutorMessage& message) override;

  // Waits briefly until torpord has read all sent messages, then ends the stream.
  void Finish();

 private:
  const std::unique_ptr<v1::Node::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::ExecutorMessage, v1::DaemonMessage>> stream_;
  std::thread listener_;
  std::atomic<bool> ended_{false};
};

}  // namespace torpor::executor
