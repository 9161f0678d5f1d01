#include "server/executor/execution_service.h"

#include <grpcpp/grpcpp.h>
#include <spdlog/spdlog.h>

#include "absl/cleanup/cleanup.h"
#include "base/descriptor_limit.h"
#include "base/status_macros.h"

namespace torpor::executor {
namespace {

using Stream = grpc::ServerReaderWriter<v1::Frame, v1::Frame>;

// gRPC numbers its codes as Abseil does.
grpc::Status ToGrpc(const absl::Status& status) {
  return {static_cast<grpc::StatusCode>(status.code()), std::string(status.message())};
}

std::span<const std::uint8_t> BytesOf(const v1::Frame& frame) {
  return {reinterpret_cast<const std::uint8_t*>(frame.payload().data()), frame.payload().size()};
}

class StreamReplies final : public ReplySink {
 public:
  explicit StreamReplies(Stream& stream) : stream_(stream) {}

  void Send(std::span<const std::uint8_t> reply) override {
    frame_.set_payload(reply.data(), reply.size());
    // A broken stream ends with the next read.
    stream_.Write(frame_);
  }

 private:
  Stream& stream_;
  v1::Frame frame_;
};

void AnswerAttach(ReplySink& replies) {
  wire::Reply reply;
  reply.call_id = static_cast<std::uint32_t>(wire::ProtocolCall::kAttach);
  std::vector<std::uint8_t> bytes;
  wire::Writer writer(bytes);
  writer(reply);
  replies.Send(bytes);
}

}  // namespace

grpc::Status ExecutionService::Run(grpc::ServerContext* context, Stream* stream) noexcept {
  if (!is_offered_) {
    return {
        grpc::StatusCode::FAILED_PRECONDITION,
        "this executor serves rings only (torpord's setting transport); unset TORPOR_TRANSPORT"};
  }
  if (const absl::Status current = device_.MakeCurrent(); !current.ok()) return ToGrpc(current);
  const absl::StatusOr<Session*> session = Attach(context, stream);
  if (!session.ok()) return ToGrpc(session.status());
  const absl::Cleanup detach = [&session] { (*session)->Detach(); };
  if (const absl::Status reset = (*session)->ResetObjects(); !reset.ok()) return ToGrpc(reset);

  StreamReplies replies(*stream);
  AnswerAttach(replies);
  v1::Frame frame;
  while (stream->Read(&frame)) {
    const absl::Status status = (*session)->RunFrame(BytesOf(frame), replies);
    if (status.ok()) continue;
    spdlog::warn("the stream of session {} ends: {}", (*session)->identity().id.value,
                 status.ToString());
    return ToGrpc(status);
  }
  return grpc::Status::OK;
}

absl::StatusOr<Session*> ExecutionService::Attach(grpc::ServerContext* context, Stream* stream) {
  const server::SilentStreams::Place silent(silent_, *context);
  v1::Frame frame;
  if (!stream->Read(&frame)) return absl::CancelledError("the stream ended without a message");
  TORPOR_ASSIGN_OR_RETURN(const wire::Attach attach, ReadAttach(BytesOf(frame)));
  return registry_.Attach(attach, [context] { context->TryCancel(); });
}

absl::StatusOr<std::unique_ptr<server::UnixGrpcServer>> Serve(ExecutionService& service,
                                                              const std::string& path,
                                                              mode_t mode) {
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(static_cast<int>(wire::kMaxFrameBytes));
  builder.SetMaxSendMessageSize(-1);
  builder.RegisterService(&service);
  return server::UnixGrpcServer::Start(
      builder, path, {.mode = mode, .accepting = {.reserved_descriptors = ReservedDescriptors()}});
}

}  // namespace torpor::executor
