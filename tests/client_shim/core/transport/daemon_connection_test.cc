#include "client_shim/core/transport/daemon_connection.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <future>

#include "client_shim/core/transport/handshake.h"
#include "tests/client_shim/fake_daemon.h"

namespace torpor::shim {
namespace {

using testing::FakeDaemon;

// A connection to a daemon that answers nothing by itself after the handshake.
class DaemonConnectionTest : public ::testing::Test {
 protected:
  DaemonConnectionTest() : daemon_(Silent()) {
    connection_ = std::make_unique<DaemonConnection>(Connect(), [] {});
  }
  std::unique_ptr<GrpcStream> Connect() {
    Settings settings;
    settings.socket = daemon_.socket();
    const Deadline deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    Result<Handshake, cudaError_t> handshake = ShakeHands(settings, HelloOf(settings), deadline);
    EXPECT_TRUE(handshake.ok());
    return std::move(handshake->control);
  }
  static FakeDaemon::Script Silent() {
    FakeDaemon::Script script;
    script.answers_memory = false;
    return script;
  }
  // As the service thread does: waits for the daemon's next message.
  DaemonConnection::Step Receive(wire::ServerMessage& message) {
    for (;;) {
      const DaemonConnection::Step step = connection_->Next(message);
      std::string why;
      if (step != DaemonConnection::Step::kNothing || connection_->IsClosed(why)) return step;
      pollfd fd{connection_->fd(), connection_->EventsToWatch(), 0};
      poll(&fd, 1, -1);
      connection_->Transfer();
    }
  }

  FakeDaemon daemon_;
  std::unique_ptr<DaemonConnection> connection_;
};

TEST_F(DaemonConnectionTest, SendsAndReceives) {
  connection_->Send(wire::LeaseAck{3});
  EXPECT_EQ(daemon_.Await<wire::LeaseAck>().lease_id, 3u);
  daemon_.Send(wire::LeaseRevoke{4});
  wire::ServerMessage message;
  ASSERT_EQ(Receive(message), DaemonConnection::Step::kMessage);
  EXPECT_EQ(std::get<wire::LeaseRevoke>(message).lease_id, 4u);
  EXPECT_EQ(connection_->Next(message), DaemonConnection::Step::kNothing);
}

TEST_F(DaemonConnectionTest, AnAnswerReleasesTheCallThatAsked) {
  wire::ServerMessage answer;
  auto call = std::async(std::launch::async, [&] {
    return connection_->Ask(5, wire::Malloc{5, 64}, answer);
  });
  daemon_.Await<wire::Malloc>();
  daemon_.Send(wire::MemoryReply{5, 0, "", 0x1000});
  wire::ServerMessage message;
  ASSERT_EQ(Receive(message), DaemonConnection::Step::kMessage);
  EXPECT_TRUE(connection_->Answer(message));
  EXPECT_EQ(call.get(), cudaSuccess);
  EXPECT_EQ(std::get<wire::MemoryReply>(answer).address, 0x1000u);
  EXPECT_FALSE(connection_->Answer(message)) << "nobody asked again";
  EXPECT_FALSE(connection_->Answer(wire::LeaseRevoke{1})) << "no answer";
}

TEST_F(DaemonConnectionTest, ClosingFailsPresentAndLaterRequests) {
  wire::ServerMessage answer;
  auto call = std::async(std::launch::async, [&] {
    return connection_->Ask(5, wire::Malloc{5, 64}, answer);
  });
  daemon_.Await<wire::Malloc>();
  connection_->Close("enough");
  EXPECT_EQ(call.get(), cudaErrorDevicesUnavailable);
  EXPECT_EQ(connection_->Ask(6, wire::Malloc{6, 64}, answer), cudaErrorDevicesUnavailable);
  std::string why;
  EXPECT_TRUE(connection_->IsClosed(why));
  EXPECT_EQ(why, "enough");
}

TEST_F(DaemonConnectionTest, InvalidFramesAreMalformed) {
  daemon_.SendRaw("nonsense");
  wire::ServerMessage message;
  EXPECT_EQ(Receive(message), DaemonConnection::Step::kMalformed);
}

TEST_F(DaemonConnectionTest, TheDaemonsEndClosesTheStream) {
  daemon_.Stop();
  wire::ServerMessage message;
  EXPECT_EQ(Receive(message), DaemonConnection::Step::kNothing);
  std::string why;
  EXPECT_TRUE(connection_->IsClosed(why));
}

TEST_F(DaemonConnectionTest, RequestsOutliveTheStreamInTheirOrder) {
  wire::ServerMessage answer;
  auto call = std::async(std::launch::async, [&] {
    return connection_->Ask(5, wire::Malloc{5, 64}, answer);
  });
  daemon_.Await<wire::Malloc>();
  connection_->Tell(6, wire::Free{6, 0x2000});
  daemon_.Await<wire::Free>();
  daemon_.Restart();
  connection_->Suspend();
  connection_->Tell(7, wire::Free{7, 0x3000});
  connection_->Send(wire::LeaseReturned{3});
  std::string why;
  EXPECT_TRUE(connection_->IsClosed(why));
  connection_->Resume(Connect());
  EXPECT_FALSE(connection_->IsClosed(why));
  EXPECT_EQ(daemon_.Await<wire::Malloc>().request_id, 5u);
  EXPECT_EQ(daemon_.Await<wire::Free>().address, 0x2000u);
  EXPECT_EQ(daemon_.Await<wire::Free>().address, 0x3000u);
  wire::ServerMessage message;
  for (const std::uint64_t request : {6u, 5u, 7u}) {
    daemon_.Send(wire::MemoryReply{request, 0, "", 0x1000});
    ASSERT_EQ(Receive(message), DaemonConnection::Step::kMessage);
    EXPECT_TRUE(connection_->Answer(message));
  }
  EXPECT_EQ(call.get(), cudaSuccess);
  EXPECT_EQ(std::get<wire::MemoryReply>(answer).address, 0x1000u);
  connection_->Send(wire::LeaseAck{8});
  daemon_.Await<wire::LeaseAck>();
  EXPECT_EQ(daemon_.Count<wire::LeaseReturned>(), 0u) << "without an answer, so not sent again";
}

TEST_F(DaemonConnectionTest, ClosingFailsRequestsThatWaitForTheNextDaemon) {
  daemon_.Stop();
  connection_->Suspend();
  wire::ServerMessage answer;
  auto call = std::async(std::launch::async, [&] {
    return connection_->Ask(5, wire::Malloc{5, 64}, answer);
  });
  connection_->Close("nobody came");
  EXPECT_EQ(call.get(), cudaErrorDevicesUnavailable);
}

}  // namespace
}  // namespace torpor::shim
