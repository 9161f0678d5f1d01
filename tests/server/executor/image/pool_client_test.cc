// The client against an owner that answers as the test says.
#include "server/executor/image/pool_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/executor/gpu/packet_server.h"
#include "server/unix_socket/unix_listener.h"
#include "tests/base/temporary_folder.h"

namespace torpor::executor {
namespace {

using ::testing::ElementsAre;

class PoolClientTest : public testing::Test {
 protected:
  // Returns the bytes of an answer.
  using Answer = std::function<std::string(const PoolRequest& request)>;

  ~PoolClientTest() override {
    server_->Stop();
    thread_.join();
  }

  std::unique_ptr<PoolClient> ClientOf(const Answer& answer) {
    server_ = std::make_unique<PacketServer>(
        *server::ListenOnUnixSocket(path_, SOCK_SEQPACKET, 0600), UniqueFd(eventfd(0, EFD_CLOEXEC)),
        sizeof(PoolRequest), [answer](int connection, std::span<const std::byte> packet) {
          PoolRequest request;
          std::memcpy(&request, packet.data(), sizeof request);
          const std::string bytes = answer(request);
          return SendPacket(connection, std::as_bytes(std::span(bytes)), {});
        });
    thread_ = std::thread([this] {
      while (server_->Serve(/*timeout_ms=*/-1)) {
      }
    });
    return *PoolClient::Connect(path_, std::chrono::seconds(30));
  }
  static std::string BytesOf(const PoolReply& reply) {
    return {reinterpret_cast<const char*>(&reply), sizeof reply};
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_.path("pool.sock");
  std::unique_ptr<PacketServer> server_;
  std::thread thread_;
};

// Another executor has taken chunks between two pieces.
TEST_F(PoolClientTest, WhatCannotBeTakenWholeIsGivenBack) {
  std::vector<std::uint64_t> needed;
  std::vector<std::uint32_t> returned;
  const auto client = ClientOf([&](const PoolRequest& request) {
    PoolReply reply;
    reply.free_chunks = 7;
    if (request.what == PoolAsk::kReturn) {
      returned.insert(returned.end(), request.numbers.begin(),
                      request.numbers.begin() + request.count);
      reply.free_chunks += request.count;
      return BytesOf(reply);
    }
    EXPECT_EQ(request.domain, 5u);
    needed.push_back(request.needed);
    if (needed.size() == 2) reply.error = ENOSPC;
    for (std::uint32_t i = 0; i < request.count; ++i) reply.numbers[i] = 1000 + i;
    return BytesOf(reply);
  });
  EXPECT_TRUE(absl::IsResourceExhausted(client->Take(5, kMaxTaken + 10).status()));
  EXPECT_THAT(needed, ElementsAre(kMaxTaken + 10, 10));
  ASSERT_EQ(returned.size(), kMaxTaken);
  for (std::uint32_t i = 0; i < kMaxTaken; ++i) EXPECT_EQ(returned[i], 1000 + i);
  EXPECT_EQ(client->free_chunks(), 7 + kMaxTaken);
}

TEST_F(PoolClientTest, AfterAWrongAnswerNoneIsBelieved) {
  int asked = 0;
  const auto client = ClientOf([&asked](const PoolRequest&) {
    return ++asked == 1 ? std::string("late") : BytesOf(PoolReply());
  });
  EXPECT_TRUE(absl::IsDataLoss(client->Take(0, 1).status()));
  EXPECT_TRUE(absl::IsUnavailable(client->Take(0, 1).status()));
  const std::uint32_t number = 0;
  EXPECT_TRUE(absl::IsUnavailable(client->Return({&number, 1})));
  EXPECT_EQ(asked, 1);
}

}  // namespace
}  // namespace torpor::executor
