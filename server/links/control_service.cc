#include "server/links/control_service.h"

#include <optional>
#include <span>
#include <utility>

#include "server/links/stream_reactor.h"

namespace torpor::server {
namespace {

using SessionReactor = StreamReactor<v1::Frame, v1::Frame>;

class SessionStream final : public SessionReactor,
                            public SessionLink,
                            public std::enable_shared_from_this<SessionStream> {
 public:
  SessionStream(LinkListener& listener, SilentStreams& silent, grpc::CallbackServerContext& context)
      : listener_(listener), silent_(std::in_place, silent, context) {}

  void Send(const wire::ServerMessage& message) override {
    const std::vector<std::uint8_t> bytes = wire::EncodeMessage(message);
    v1::Frame frame;
    frame.set_payload(bytes.data(), bytes.size());
    Queue(std::move(frame));
  }

  void Close(const std::string& reason) override {
    FinishStream(grpc::Status(grpc::StatusCode::ABORTED, reason));
  }

 private:
  void OnMessage(const v1::Frame& frame) override {
    silent_.reset();
    const auto* begin = reinterpret_cast<const std::uint8_t*>(frame.payload().data());
    wire::ClientMessage message;
    if (!wire::DecodeMessage(std::span(begin, frame.payload().size()), message)) {
      return Close("a frame of the session is no message of this protocol");
    }
    const std::shared_ptr<SessionStream> self = shared_from_this();
    listener_.OnSessionMessage(self, std::move(message), [self] { self->ReadNext(); });
  }

  void OnEnd(std::shared_ptr<SessionReactor>) override {
    silent_.reset();
    listener_.OnSessionClosed(shared_from_this());
  }

  LinkListener& listener_;
  std::optional<SilentStreams::Place> silent_;  // until the first message
};

}  // namespace

grpc::ServerBidiReactor<v1::Frame, v1::Frame>* ControlService::Connect(
    grpc::CallbackServerContext* context) {
  auto stream = std::make_shared<SessionStream>(listener_, silent_, *context);
  stream->Start(stream, context);
  return stream.get();
}

}  // namespace torpor::server
