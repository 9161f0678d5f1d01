#include "server/links/control_service.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <semaphore>
#include <thread>
#include <vector>

#include "tests/server/links/recording_listener.h"
#include "tests/server/links/test_server.h"

namespace torpor::server {
namespace {

// A client that speaks the protocol's bytes.
class TestClient {
 public:
  explicit TestClient(const TestServer& server)
      : stub_(v1::Control::NewStub(server.Dial())), stream_(stub_->Connect(&context_)) {}
  ~TestClient() { context_.TryCancel(); }

  void SendBytes(const std::string& bytes) {
    v1::Frame frame;
    frame.set_payload(bytes);
    stream_->Write(frame);
  }
  void Send(const wire::ClientMessage& message) {
    const auto bytes = wire::EncodeMessage(message);
    SendBytes({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  std::optional<wire::ServerMessage> Receive() {
    v1::Frame frame;
    if (!stream_->Read(&frame)) return std::nullopt;
    wire::ServerMessage message;
    const auto* begin = reinterpret_cast<const std::uint8_t*>(frame.payload().data());
    EXPECT_TRUE(wire::DecodeMessage(std::span(begin, frame.payload().size()), message));
    return message;
  }
  void WritesDone() { stream_->WritesDone(); }
  grpc::Status Finish() { return stream_->Finish(); }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<v1::Control::Stub> stub_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::Frame, v1::Frame>> stream_;
};

class ControlServiceTest : public testing::Test {
 protected:
  RecordingListener listener_;
  ControlService service_{listener_};
  TestServer server_{service_};
};

TEST_F(ControlServiceTest, CarriesMessagesBothWays) {
  TestClient client(server_);
  wire::Hello hello;
  hello.token = "secret";
  client.Send(hello);
  const auto event = listener_.NextSession();
  ASSERT_TRUE(event.message);
  EXPECT_EQ(std::get<wire::Hello>(*event.message).token, "secret");
  event.link->Send(wire::LeaseRevoke{7});
  event.link->Send(wire::LeaseRevoke{8});
  EXPECT_EQ(std::get<wire::LeaseRevoke>(*client.Receive()).lease_id, 7u);
  EXPECT_EQ(std::get<wire::LeaseRevoke>(*client.Receive()).lease_id, 8u);
}

TEST_F(ControlServiceTest, ReadsOnWhenItIsServed) {
  TestClient client(server_);
  client.Send(wire::Malloc{1, 10});
  client.Send(wire::Malloc{2, 20});
  const auto first = listener_.NextSession();
  EXPECT_EQ(std::get<wire::Malloc>(*first.message).request_id, 1u);
  first.done();
  EXPECT_EQ(std::get<wire::Malloc>(*listener_.NextSession().message).request_id, 2u);
}

TEST_F(ControlServiceTest, OneOfTooManySilentStreamsIsCutOff) {
  TestClient speaking(server_);
  speaking.Send(wire::LeaseRequest{});
  const auto event = listener_.NextSession();
  std::counting_semaphore<> cut(0);
  std::deque<TestClient> silent;
  std::vector<std::jthread> readers;
  for (std::size_t i = 0; i <= ControlService::kMostSilent; ++i) {
    readers.emplace_back([&cut, &client = silent.emplace_back(server_)] {
      EXPECT_FALSE(client.Receive());
      cut.release();
    });
  }
  cut.acquire();
  event.link->Send(wire::LeaseRevoke{7});
  EXPECT_EQ(std::get<wire::LeaseRevoke>(*speaking.Receive()).lease_id, 7u);
  server_.Stop();
}

TEST_F(ControlServiceTest, TellsWhenTheClientIsGone) {
  auto client = std::make_unique<TestClient>(server_);
  client->Send(wire::LeaseRequest{});
  const auto event = listener_.NextSession();
  client.reset();
  EXPECT_FALSE(listener_.NextSession().message);
  event.link->Send(wire::LeaseRevoke{7});  // nobody is there: no harm
  event.done();
}

TEST_F(ControlServiceTest, TellsWhenTheClientIsDone) {
  TestClient client(server_);
  client.Send(wire::LeaseRequest{});
  const auto event = listener_.NextSession();
  client.WritesDone();
  event.done();
  EXPECT_FALSE(listener_.NextSession().message);
  EXPECT_TRUE(client.Finish().ok());
}

TEST_F(ControlServiceTest, HostileBytesEndTheirOwnStreamOnly) {
  TestClient good(server_);
  good.Send(wire::LeaseRequest{});
  const auto event = listener_.NextSession();
  event.done();
  for (const std::string& bytes : {std::string(), std::string(3, 'x'), std::string(4096, '\xff')}) {
    TestClient bad(server_);
    bad.SendBytes(bytes);
    EXPECT_FALSE(listener_.NextSession().message);
    EXPECT_EQ(bad.Finish().error_code(), grpc::StatusCode::ABORTED);
  }
  good.Send(wire::Malloc{5, 1});
  EXPECT_EQ(std::get<wire::Malloc>(*listener_.NextSession().message).request_id, 5u);
}

TEST_F(ControlServiceTest, CloseSendsWhatIsQueuedFirst) {
  TestClient client(server_);
  client.Send(wire::LeaseRequest{});
  const auto event = listener_.NextSession();
  wire::HelloReply reply;
  reply.error = 800;
  reply.message = "who are you?";
  event.link->Send(reply);
  event.link->Close("refused");
  EXPECT_EQ(std::get<wire::HelloReply>(*client.Receive()).message, "who are you?");
  EXPECT_FALSE(client.Receive());
  const grpc::Status status = client.Finish();
  EXPECT_EQ(status.error_message(), "refused");
  event.done();
  EXPECT_FALSE(listener_.NextSession().message);
}

TEST_F(ControlServiceTest, ClientThatDoesNotReadIsCutOff) {
  TestClient client(server_);
  client.Send(wire::LeaseRequest{});
  const auto event = listener_.NextSession();
  wire::MemoryReply reply;
  reply.message.assign(4096, 'x');
  for (int i = 0; i < 10'000; ++i) event.link->Send(reply);
  event.done();
  EXPECT_FALSE(listener_.NextSession().message);
}

}  // namespace
}  // namespace torpor::server
