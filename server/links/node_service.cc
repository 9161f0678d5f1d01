#include "server/links/node_service.h"

#include <utility>

#include "server/links/stream_reactor.h"

namespace torpor::server {
namespace {

using ExecutorReactor = StreamReactor<v1::ExecutorMessage, v1::DaemonMessage>;

class ExecutorStream final : public ExecutorReactor,
                             public ExecutorChannel,
                             public std::enable_shared_from_this<ExecutorStream> {
 public:
  explicit ExecutorStream(LinkListener& listener) : listener_(listener) {}

  void Send(const v1::DaemonMessage& message) override { Queue(message); }

  void Close(const std::string& reason) override {
    FinishStream(grpc::Status(grpc::StatusCode::ABORTED, reason));
  }

 private:
  void OnMessage(const v1::ExecutorMessage& message) override {
    const std::shared_ptr<ExecutorStream> self = shared_from_this();
    listener_.OnExecutorMessage(self, message, [self] { self->ReadNext(); });
  }

  void OnEnd(std::shared_ptr<ExecutorReactor>) override {
    listener_.OnExecutorClosed(shared_from_this());
  }

  LinkListener& listener_;
};

}  // namespace

grpc::ServerBidiReactor<v1::ExecutorMessage, v1::DaemonMessage>* NodeService::Attach(
    grpc::CallbackServerContext* context) {
  auto stream = std::make_shared<ExecutorStream>(listener_);
  stream->Start(stream, context);
  return stream.get();
}

}  // namespace torpor::server
