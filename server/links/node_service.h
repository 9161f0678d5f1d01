#pragma once

#include "proto/torpor/v1/node.grpc.pb.h"
#include "server/links/links.h"

namespace torpor::server {

// Serves the streams of executors.
class NodeService final : public v1::Node::CallbackService {
 public:
  // `listener` must outlive the server that the service is registered with.
  explicit NodeService(LinkListener& listener) : listener_(listener) {}

  grpc::ServerBidiReactor<v1::ExecutorMessage, v1::DaemonMessage>* Attach(
      grpc::CallbackServerContext* context) override;

 private:
  LinkListener& listener_;
};

}  // namespace torpor::server
