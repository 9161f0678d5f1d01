#include "tests/server/executor/test_client.h"

#include <grpcpp/grpcpp.h>

namespace torpor::executor {

TestClient::TestClient(const std::string& socket_path)
    : stub_(v1::Execution::NewStub(
          grpc::CreateChannel("unix:" + socket_path, grpc::InsecureChannelCredentials()))),
      stream_(stub_->Run(&context_)) {}

bool TestClient::Send(const std::vector<std::uint8_t>& frame) {
  v1::Frame message;
  message.set_payload(frame.data(), frame.size());
  return stream_->Write(message);
}

std::optional<wire::Reply> TestClient::Receive() {
  v1::Frame message;
  if (!stream_->Read(&message)) return std::nullopt;
  wire::Reply reply;
  wire::Reader reader(
      {reinterpret_cast<const std::uint8_t*>(message.payload().data()), message.payload().size()});
  reader(reply);
  if (!reader.done()) return std::nullopt;
  if (reply.call_id == static_cast<std::uint32_t>(wire::ProtocolCall::kOutput)) return Receive();
  return reply;
}

std::optional<wire::Reply> TestClient::Attach(std::uint64_t session,
                                              const std::array<std::uint8_t, 16>& key) {
  BatchBuilder batch;
  batch.Add(static_cast<std::uint32_t>(wire::ProtocolCall::kAttach), wire::Attach{session, key});
  return Call(batch, 0);
}

std::optional<wire::Reply> TestClient::Call(const BatchBuilder& batch, std::uint64_t lease) {
  if (!Send(batch.Frame(lease))) return std::nullopt;
  return Receive();
}

grpc::Status TestClient::Finish() {
  stream_->WritesDone();
  return stream_->Finish();
}

}  // namespace torpor::executor
