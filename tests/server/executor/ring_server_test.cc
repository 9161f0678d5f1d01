// Rings between the executor's server and a client of the test's own, broken or hostile. The GPU is
// the fake driver's.
#include "server/executor/ring_server.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "proto/cuda_api/cudart_commands.h"
#include "proto/wire/doorbell.h"
#include "tests/server/executor/ring_client.h"
#include "tests/server/executor/session/session_fixture.h"

namespace torpor::executor {
namespace {

constexpr std::uint64_t kLease = 5;
constexpr std::uint32_t kSynchronize = wire::DeviceSynchronize::kCallId;

BatchBuilder Synchronize() { return BatchBuilder().Add(wire::DeviceSynchronize{}); }

// The processor time of this process so far, in seconds.
double ProcessorSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

class RingServerTest : public testing::Test {
 protected:
  RingServerTest() {
    EXPECT_TRUE(registry_.Add(std::move(gpu_.session)).ok());
    auto server = RingServer::Start(path_, 0600, *gpu_.device, registry_);
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  RingClient Connect() { return RingClient(path_, gpu_.identity.id.value, gpu_.identity.key); }
  // A new client, once the executor has noticed the end of the one before.
  RingClient Reconnect() {
    for (;;) {
      RingClient client = Connect();
      if (client.error() != EBUSY) return client;
      std::this_thread::yield();
    }
  }
  void ExpectServes(RingClient& client) {
    ASSERT_EQ(client.error(), 0);
    const auto reply = client.Call(Synchronize(), kLease);
    ASSERT_TRUE(reply.has_value());
    EXPECT_EQ(reply->call_id, kSynchronize);
    EXPECT_EQ(reply->status, 0) << reply->message;
  }

  FakeSession gpu_;
  SessionRegistry registry_;
  const std::string path_ = gpu_.folder + "/executor.sock" + wire::kRingSocketSuffix;
  std::unique_ptr<RingServer> server_;
};

TEST_F(RingServerTest, ABatchIsAnswered) {
  RingClient client = Connect();
  for (int i = 0; i < 100; ++i) ExpectServes(client);
}

TEST_F(RingServerTest, AWrongKeyIsRefused) {
  const RingClient stranger(path_, gpu_.identity.id.value, {});
  EXPECT_EQ(stranger.error(), EACCES);
  const RingClient nobody(path_, 77, gpu_.identity.key);
  EXPECT_EQ(nobody.error(), EACCES) << "no different from a wrong key";
}

TEST_F(RingServerTest, ASessionHasOneStream) {
  RingClient client = Connect();
  EXPECT_EQ(Connect().error(), EBUSY);
  ExpectServes(client);
}

TEST_F(RingServerTest, ManyBatchesWrapTheRing) {
  RingClient client = Connect();
  BatchBuilder batch;
  for (int i = 0; i < 5000; ++i) batch.Add(wire::StreamMark{});
  batch.Add(wire::DeviceSynchronize{});
  ASSERT_GT(batch.Frame(kLease).size(), wire::kRequestRingBytes / 5);
  for (int i = 0; i < 20; ++i) {
    const auto reply = client.Call(batch, kLease);
    ASSERT_TRUE(reply.has_value()) << i;
    ASSERT_EQ(reply->async_error, 0) << reply->message;
  }
}

TEST_F(RingServerTest, ABatchMayBeLongerThanTheRing) {
  RingClient client = Connect();
  BatchBuilder batch;
  for (int i = 0; i < 40'000; ++i) batch.Add(wire::StreamMark{});
  batch.Add(wire::DeviceSynchronize{});
  const std::vector<std::uint8_t> record = RingClient::Record(batch.Frame(kLease));
  ASSERT_GT(record.size(), wire::kRequestRingBytes);
  std::span<const std::uint8_t> rest = record;
  while (!rest.empty()) {
    rest = rest.subspan(client.Write(rest));
    std::this_thread::yield();
  }
  ASSERT_TRUE(client.Receive().has_value());
}

TEST_F(RingServerTest, AClientThatDoesNotReadHoldsItsOwnThreadOnly) {
  RingClient client = Connect();
  // More replies than the ring has room for, in batches that the ring of requests takes at once.
  BatchBuilder batch;
  constexpr int kCalls = 4000;
  for (int i = 0; i < kCalls; ++i) batch.Add(wire::DeviceSynchronize{});
  const auto record = RingClient::Record(batch.Frame(kLease));
  ASSERT_EQ(client.Write(record), record.size());
  while ((client.page().executor_waits & wire::kWaitsForRoom) == 0) std::this_thread::yield();
  EXPECT_LE(client.page().replies.written, wire::kReplyRingBytes);
  for (int i = 0; i < kCalls; ++i) ASSERT_TRUE(client.Receive().has_value()) << i;
  ExpectServes(client);
}

TEST_F(RingServerTest, AClientThatDiesWithAFullRingIsLetGo) {
  RingClient client = Connect();
  BatchBuilder batch;
  for (int i = 0; i < 4000; ++i) batch.Add(wire::DeviceSynchronize{});
  client.Write(RingClient::Record(batch.Frame(kLease)));
  while ((client.page().executor_waits & wire::kWaitsForRoom) == 0) std::this_thread::yield();
  client.Disconnect();
  RingClient next = Reconnect();
  ExpectServes(next);
}

TEST_F(RingServerTest, ACursorOutsideTheRingEndsTheSession) {
  for (const std::uint64_t lie :
       {wire::kRequestRingBytes + 1, std::numeric_limits<std::uint64_t>::max()}) {
    RingClient client = Reconnect();
    client.page().requests.written = lie;
    wire::WakeSleepers(client.page().executor_waits);
    client.page().executor_waits = 0;
    wire::WakeSleepers(client.page().executor_waits);
    EXPECT_NE(client.AwaitEnd().find("a cursor outside the ring of requests"), std::string::npos);
  }
  RingClient next = Reconnect();
  ExpectServes(next);
}

TEST_F(RingServerTest, ALieAboutTakenRepliesEndsTheSession) {
  RingClient client = Connect();
  client.page().replies.taken = 1 << 20;
  client.Write(RingClient::Record(Synchronize().Frame(kLease)));
  EXPECT_NE(client.AwaitEnd().find("a cursor outside the ring of replies"), std::string::npos);
}

TEST_F(RingServerTest, ATooLongRecordEndsTheSession) {
  RingClient client = Connect();
  const std::vector<std::uint8_t> length(sizeof(wire::RecordLength), 0xff);
  client.Write(length);
  EXPECT_NE(client.AwaitEnd().find("a batch of more than"), std::string::npos);
}

TEST_F(RingServerTest, GarbageInARecordEndsTheSession) {
  RingClient client = Connect();
  client.Write(RingClient::Record(std::vector<std::uint8_t>(100, 0xee)));
  EXPECT_NE(client.AwaitEnd(), "");
  RingClient next = Reconnect();
  ExpectServes(next);
}

TEST_F(RingServerTest, ABatchOfAnotherLeaseEndsTheSession) {
  RingClient client = Connect();
  client.Write(RingClient::Record(Synchronize().Frame(kLease + 1)));
  EXPECT_NE(client.AwaitEnd().find("lease"), std::string::npos);
}

TEST_F(RingServerTest, AClientKilledInTheMiddleOfARecordEndsItsSessionOnly) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "forks beside other threads";
#endif
  const pid_t child = fork();
  if (child == 0) {
    RingClient client = Connect();
    std::vector<std::uint8_t> record = RingClient::Record(Synchronize().Frame(kLease));
    client.Write(std::span(record).first(record.size() / 2));
    raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  RingClient next = Reconnect();
  ExpectServes(next);
}

TEST_F(RingServerTest, AClientThatUndoesWakeUpsIsLetGoAllTheSame) {
  RingClient client = Connect();
  client.AwaitSleep();
  // A second mapping of the page outlives the connection.
  std::atomic<bool> is_done{false};
  std::thread hostile([&] {
    while (!is_done) client.page().executor_waits = wire::kWaitsForRecord;
  });
  const int copy = dup(client.connection().get());
  ASSERT_EQ(shutdown(copy, SHUT_RDWR), 0);
  close(copy);
  RingClient next = Reconnect();
  is_done = true;
  hostile.join();
  ExpectServes(next);
}

TEST_F(RingServerTest, AnIdleSessionTakesNoProcessor) {
  RingClient client = Connect();
  ExpectServes(client);
  client.AwaitSleep();
  const double before = ProcessorSeconds();
  pollfd nothing{client.connection().get(), POLLIN, 0};
  EXPECT_EQ(poll(&nothing, 1, 300), 0) << "nothing comes in this time";
  EXPECT_LT(ProcessorSeconds() - before, 0.03) << "of 0.3 s";
  ExpectServes(client);
}

TEST_F(RingServerTest, AConnectionWithoutARequestIsClosed) {
  const std::vector<std::uint8_t> nonsense(7, 1);
  UniqueFd stranger(socket(AF_UNIX, SOCK_SEQPACKET, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path_.c_str(), path_.size());
  ASSERT_EQ(connect(stranger.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(send(stranger.get(), nonsense.data(), nonsense.size(), MSG_NOSIGNAL), 7);
  pollfd end{stranger.get(), POLLIN, 0};
  EXPECT_EQ(poll(&end, 1, 20'000), 1);
  char byte = 0;
  EXPECT_EQ(recv(stranger.get(), &byte, 1, 0), 0);
  RingClient client = Connect();
  ExpectServes(client);
}

TEST_F(RingServerTest, AClosedSessionEndsItsRings) {
  RingClient client = Connect();
  ExpectServes(client);
  auto session = registry_.Find(gpu_.identity.id);
  ASSERT_TRUE(session.ok());
  ASSERT_TRUE((*session)->Close(SteadyClock().Now() + std::chrono::seconds(20)).ok());
  EXPECT_EQ(client.AwaitEnd(), "");
}

TEST_F(RingServerTest, TheServersEndEndsTheSessions) {
  RingClient client = Connect();
  ExpectServes(client);
  server_->Shutdown(std::chrono::seconds(20));
  EXPECT_EQ(client.AwaitEnd(), "");
}

}  // namespace
}  // namespace torpor::executor
