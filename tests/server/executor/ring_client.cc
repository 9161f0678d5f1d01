#include "tests/server/executor/ring_client.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <chrono>
#include <cstring>
#include <thread>

#include "client_shim/core/transport/ring_connection.h"
#include "proto/wire/doorbell.h"

namespace torpor::executor {
namespace {

constexpr int kPatienceMilliseconds = 20'000;
constexpr std::size_t kMaxReply = std::size_t{64} << 20;

}  // namespace

RingClient::RingClient(const std::string& path, std::uint64_t session,
                       const std::array<std::uint8_t, 16>& key) {
  const std::string executor = path.substr(0, path.size() - std::strlen(wire::kRingSocketSuffix));
  auto opened = shim::OpenRings(executor, {session, key},
                                std::chrono::steady_clock::now() + std::chrono::seconds(20));
  if (!opened) {
    error_ = opened.failure().code;
    return;
  }
  connection_ = std::move(opened->socket);
  file_ = std::move(opened->file);
  requests_.emplace(page().requests, file_->requests());
  replies_.emplace(wire::RingReader(page().replies, file_->replies()), kMaxReply);
}

std::vector<std::uint8_t> RingClient::Record(const std::vector<std::uint8_t>& frame) {
  const auto length = static_cast<wire::RecordLength>(frame.size());
  std::vector<std::uint8_t> record(sizeof length + frame.size());
  std::memcpy(record.data(), &length, sizeof length);
  if (!frame.empty()) std::memcpy(record.data() + sizeof length, frame.data(), frame.size());
  return record;
}

std::size_t RingClient::Write(std::span<const std::uint8_t> bytes) {
  const std::size_t written = requests_->Write(bytes);
  if (wire::TakeWaits(page().executor_waits, wire::kWaitsForRecord) != 0) {
    wire::WakeSleepers(page().executor_waits);
  }
  return written;
}

std::optional<wire::Reply> RingClient::Call(const BatchBuilder& batch, std::uint64_t lease) {
  const std::vector<std::uint8_t> record = Record(batch.Frame(lease));
  EXPECT_EQ(Write(record), record.size());
  return Receive();
}

std::optional<wire::Reply> RingClient::Receive() {
  std::span<const std::uint8_t> record;
  while (replies_->Next(record) != wire::RecordReader::Step::kRecord) {
    if (wire::TakeWaits(page().executor_waits, wire::kWaitsForRoom) != 0) {
      wire::WakeSleepers(page().executor_waits);
    }
    page().client_waits.fetch_or(wire::kPollsForRecord);
    if (replies_->HasBytes()) continue;
    pollfd polled{connection_.get(), POLLIN, 0};
    if (poll(&polled, 1, kPatienceMilliseconds) <= 0) return std::nullopt;
    char notice = 0;
    if (recv(connection_.get(), &notice, 1, MSG_DONTWAIT) <= 0 ||
        notice == static_cast<char>(wire::RingNotice::kEnd)) {
      return std::nullopt;
    }
  }
  wire::Reply reply;
  wire::Reader reader(record);
  reader(reply);
  EXPECT_TRUE(reader.done());
  return reply;
}

std::string RingClient::AwaitEnd() const {
  std::string reason;
  for (;;) {
    std::array<char, wire::kMaxNoticeBytes> notice{};
    pollfd polled{connection_.get(), POLLIN, 0};
    if (poll(&polled, 1, kPatienceMilliseconds) <= 0) return "no end came";
    const ssize_t got = recv(connection_.get(), notice.data(), notice.size(), MSG_DONTWAIT);
    if (got <= 0) return reason;
    if (notice[0] == static_cast<char>(wire::RingNotice::kEnd)) {
      reason.assign(notice.data() + 1, static_cast<std::size_t>(got) - 1);
    }
  }
}

void RingClient::AwaitSleep() {
  const auto until =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatienceMilliseconds);
  while ((page().executor_waits.load() & wire::kWaitsForRecord) == 0) {
    ASSERT_LT(std::chrono::steady_clock::now(), until) << "the executor does not sleep";
    std::this_thread::yield();
  }
}

}  // namespace torpor::executor
