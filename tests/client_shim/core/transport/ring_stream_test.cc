// The client's side of rings. The test is the executor: it writes and reads the memory file, and
// holds the other end of the connection.
#include "client_shim/core/transport/ring_stream.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "client_shim/core/transport/frame_codec.h"

namespace torpor::shim {
namespace {

using Step = wire::RecordReader::Step;

class RingStreamTest : public ::testing::Test {
 protected:
  RingStreamTest() {
    const UniqueFd file(memfd_create("rings", MFD_CLOEXEC));
    EXPECT_EQ(ftruncate(file.get(), wire::kRingFileBytes), 0);
    mine_ = wire::RingFile::Map(file.get());
    int ends[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    executor_end_.Reset(ends[0]);
    stream_ = std::make_unique<RingStream>(
        RingConnection{UniqueFd(ends[1]), wire::RingFile::Map(file.get())});
    requests_.emplace(wire::RingReader(mine_->page().requests, mine_->requests()),
                      wire::kMaxFrameBytes);
    replies_.emplace(mine_->page().replies, mine_->replies());
  }

  void Send(std::size_t bytes, std::uint8_t fill) {
    std::vector<std::uint8_t> frame(kFrameRoom + bytes, fill);
    stream_->Send(frame);
    stream_->Write();
  }
  void Reply(const std::string& text) {
    const auto length = static_cast<wire::RecordLength>(text.size());
    replies_->Write({reinterpret_cast<const std::uint8_t*>(&length), sizeof length});
    replies_->Write({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
    if (wire::TakeWaits(page().client_waits, wire::kWaitsForRecord) != 0)
      wire::WakeSleepers(page().client_waits);
  }
  void Notify(wire::RingNotice notice, const std::string& text = "") {
    const std::string packet = std::string(1, static_cast<char>(notice)) + text;
    EXPECT_EQ(send(executor_end_.get(), packet.data(), packet.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(packet.size()));
  }
  // The next request's size, or 0.
  std::size_t TakeRequest() {
    std::span<const std::uint8_t> record;
    return requests_->Next(record) == Step::kRecord ? record.size() : 0;
  }
  std::string TakeReply() {
    std::span<const std::uint8_t> payload;
    if (!stream_->Next(payload)) return "";
    return {reinterpret_cast<const char*>(payload.data()), payload.size()};
  }
  wire::RingPage& page() { return mine_->page(); }

  std::unique_ptr<wire::RingFile> mine_;
  UniqueFd executor_end_;
  std::unique_ptr<RingStream> stream_;
  std::optional<wire::RecordReader> requests_;
  std::optional<wire::RingWriter> replies_;
};

TEST_F(RingStreamTest, FramesTravelBothWays) {
  Send(24, 1);
  Send(0, 1);
  Send(100, 2);
  std::span<const std::uint8_t> record;
  ASSERT_EQ(requests_->Next(record), Step::kRecord);
  EXPECT_EQ(std::vector(record.begin(), record.end()), std::vector<std::uint8_t>(24, 1));
  ASSERT_EQ(requests_->Next(record), Step::kRecord);
  EXPECT_TRUE(record.empty());
  EXPECT_EQ(TakeRequest(), 100u);
  EXPECT_EQ(stream_->Await(false), FrameStream::Arrival::kNothing);
  Reply("hello");
  EXPECT_EQ(stream_->Await(true), FrameStream::Arrival::kBytes);
  EXPECT_EQ(TakeReply(), "hello");
  EXPECT_EQ(TakeReply(), "");
}

TEST_F(RingStreamTest, ASlowExecutorHoldsOutputBackAndAsksForTheRest) {
  Send(wire::kRequestRingBytes, 1);  // with its length, a little more than the ring
  Send(1000, 2);
  EXPECT_EQ(stream_->unsent_bytes(), 2 * sizeof(wire::RecordLength) + 1000);
  EXPECT_NE(page().client_waits & wire::kWaitsForRoom, 0u);
  EXPECT_EQ(TakeRequest(), 0u) << "a part of the first";
  EXPECT_NE(wire::TakeWaits(page().client_waits, wire::kWaitsForRoom), 0u);
  Notify(wire::RingNotice::kLook);
  EXPECT_TRUE(stream_->OnEvents(POLLIN)) << "output may leave";
  stream_->Write();
  EXPECT_EQ(stream_->unsent_bytes(), 0u);
  EXPECT_EQ(TakeRequest(), wire::kRequestRingBytes);
  EXPECT_EQ(TakeRequest(), 1000u);
}

TEST_F(RingStreamTest, AReplyWakesAThreadThatSleeps) {
  auto arrival = std::async(std::launch::async, [this] { return stream_->Await(true); });
  while ((page().client_waits & wire::kWaitsForRecord) == 0) std::this_thread::yield();
  Reply("late");
  EXPECT_EQ(arrival.get(), FrameStream::Arrival::kBytes);
  EXPECT_EQ(TakeReply(), "late");
}

TEST_F(RingStreamTest, AnExecutorThatIsAsleepIsWoken) {
  auto woken = std::async(std::launch::async, [this] {
    const auto is_ready = [this] { return requests_->HasBytes(); };
    while (!is_ready()) wire::SleepOnce(page().executor_waits, wire::kWaitsForRecord, is_ready);
    return TakeRequest();
  });
  while ((page().executor_waits & wire::kWaitsForRecord) == 0) std::this_thread::yield();
  Send(8, 1);
  EXPECT_EQ(woken.get(), 8u);
}

TEST_F(RingStreamTest, TheServiceThreadIsToldOfReplies) {
  EXPECT_FALSE(stream_->Prepare(/*reads=*/false).is_ready);
  EXPECT_EQ(page().client_waits & wire::kPollsForRecord, 0u);
  EXPECT_FALSE(stream_->Prepare(/*reads=*/true).is_ready);
  EXPECT_NE(page().client_waits & wire::kPollsForRecord, 0u);
  Reply("at once");
  EXPECT_TRUE(stream_->Prepare(/*reads=*/true).is_ready) << "came before the announcement";
}

TEST_F(RingStreamTest, TheEndWakesAThreadThatWaitsAndComesAfterTheReplies) {
  auto arrival = std::async(std::launch::async, [this] { return stream_->Await(true); });
  while ((page().client_waits & wire::kWaitsForRecord) == 0) std::this_thread::yield();
  replies_->Write(std::vector<std::uint8_t>{2, 0, 0, 0, 'o', 'k'});  // without a wake-up
  Notify(wire::RingNotice::kEnd, "the batch was bad");
  executor_end_.Reset();
  stream_->OnEvents(POLLIN | POLLHUP);
  EXPECT_EQ(arrival.get(), FrameStream::Arrival::kBytes);
  EXPECT_EQ(TakeReply(), "ok");
  const FrameStream::Arrival end = stream_->Await(true);
  EXPECT_EQ(end, FrameStream::Arrival::kEnd);
  stream_->Take(end);
  EXPECT_TRUE(stream_->closed());
  EXPECT_EQ(stream_->why_closed(), "the batch was bad");
}

TEST_F(RingStreamTest, EndingTheStreamWakesAThreadThatWaits) {
  auto arrival = std::async(std::launch::async, [this] { return stream_->Await(true); });
  while ((page().client_waits & wire::kWaitsForRecord) == 0) std::this_thread::yield();
  stream_->End("enough");
  EXPECT_EQ(arrival.get(), FrameStream::Arrival::kEnd);
  EXPECT_EQ(stream_->why_closed(), "enough");
  pollfd end{executor_end_.get(), POLLRDHUP, 0};
  EXPECT_EQ(poll(&end, 1, 0), 1) << "the executor learns of it";
}

TEST_F(RingStreamTest, BrokenCursorsCloseTheStream) {
  page().replies.written = std::uint64_t{1} << 40;
  EXPECT_EQ(stream_->Await(true), FrameStream::Arrival::kBytes);
  EXPECT_EQ(TakeReply(), "");
  EXPECT_TRUE(stream_->closed());
  EXPECT_EQ(stream_->why_closed(), "the executor broke the ring of replies");
}

TEST_F(RingStreamTest, ABrokenRingOfRequestsClosesTheStream) {
  page().requests.taken = 77;
  Send(8, 1);
  EXPECT_TRUE(stream_->closed());
  EXPECT_EQ(stream_->why_closed(), "the executor broke the ring of requests");
}

}  // namespace
}  // namespace torpor::shim
