#include "client_shim/core/transport/executor_link.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <set>

#include "client_shim/core/commands/batch_writer.h"
#include "client_shim/core/transport/executor_links.h"
#include "client_shim/core/transport/grpc_frame_stream.h"
#include "client_shim/core/transport/unix_socket.h"
#include "proto/cuda_api/cudart_commands.h"
#include "tests/client_shim/core/http2.h"
#include "tests/client_shim/fake_executor.h"

namespace torpor::shim {
namespace {

using testing::FakeExecutor;

constexpr std::uint32_t kSync = wire::DeviceSynchronize::kCallId;

class ExecutorLinkTest : public ::testing::Test {
 protected:
  static std::string SocketName() {
    return ::testing::TempDir() + "/link-" + std::to_string(getpid()) + ".sock";
  }
  ExecutorLinkPtr Connect() {
    Result<UniqueFd, int> socket =
        ConnectUnix(executor_.socket(), SOCK_STREAM,
                    std::chrono::steady_clock::now() + std::chrono::seconds(20));
    EXPECT_TRUE(socket.ok());
    return std::make_shared<ExecutorLink>(
        std::make_unique<GrpcFrameStream>(Http2(), std::move(socket).value()));
  }
  // Sends one SYNC command that `waiter` waits for.
  void Send(ReplyWaiter* waiter) {
    BatchWriter batch({4096, 16, {}});
    batch.Append(kSync, {});
    link_->Expect({PendingReply::Kind::kCall, kSync, waiter});
    std::vector<std::uint8_t> frame = batch.Take(1);
    link_->Send(frame);
    link_->Write();
  }
  // Reads until a reply comes or the stream is closed.
  bool Receive(wire::Reply& reply, PendingReply& answered) {
    ExecutorLink::Lock lock(mutex_);
    while (!link_->Next(reply, answered)) {
      if (link_->is_closed()) return false;
      link_->Read(lock, /*waits=*/true);
      link_->Write();
    }
    return true;
  }

  FakeExecutor executor_{SocketName(), {kSync}};
  std::mutex mutex_;
  ExecutorLinkPtr link_ = Connect();
  ReplyWaiter waiter_;
};

TEST_F(ExecutorLinkTest, AReplyComesWithTheCommandThatItAnswers) {
  EXPECT_FALSE(link_->AwaitsReply());
  Send(&waiter_);
  EXPECT_TRUE(link_->HasWaiter());
  EXPECT_EQ(link_->EventsToWatch().events, 0) << "the waiting thread reads";
  wire::Reply reply;
  PendingReply answered;
  ASSERT_TRUE(Receive(reply, answered));
  EXPECT_EQ(reply.call_id, kSync);
  EXPECT_EQ(answered.waiter, &waiter_);
  EXPECT_FALSE(link_->AwaitsReply());
}

TEST_F(ExecutorLinkTest, ReadingIsHandedOver) {
  EXPECT_FALSE(link_->HandOverReading()) << "nothing to read";
  Send(nullptr);
  EXPECT_TRUE(link_->HandOverReading()) << "the service thread reads";
  EXPECT_EQ(link_->EventsToWatch().events & POLLIN, POLLIN);
  Send(&waiter_);
  EXPECT_FALSE(link_->HandOverReading()) << "a waiting thread reads";
}

TEST_F(ExecutorLinkTest, OutputComesUnasked) {
  Send(nullptr);
  executor_.Await(kSync);
  wire::Reply output;
  output.call_id = static_cast<std::uint32_t>(wire::ProtocolCall::kOutput);
  const std::vector<std::uint8_t> bytes = wire::Encoded(output);
  executor_.SendRaw({bytes.begin(), bytes.end()});
  std::set<PendingReply::Kind> kinds;
  for (int i = 0; i < 2; ++i) {
    wire::Reply reply;
    PendingReply answered;
    ASSERT_TRUE(Receive(reply, answered));
    kinds.insert(answered.kind);
  }
  EXPECT_EQ(kinds, (std::set{PendingReply::Kind::kCall, PendingReply::Kind::kOutput}));
}

TEST_F(ExecutorLinkTest, AnUnexpectedReplyClosesTheStream) {
  Send(nullptr);
  executor_.Await(kSync);
  wire::Reply reply;
  PendingReply answered;
  ASSERT_TRUE(Receive(reply, answered));
  wire::Reply unasked;
  unasked.call_id = kSync;
  const std::vector<std::uint8_t> bytes = wire::Encoded(unasked);
  executor_.SendRaw({bytes.begin(), bytes.end()});
  EXPECT_FALSE(Receive(reply, answered));
  EXPECT_TRUE(link_->is_closed());
}

TEST_F(ExecutorLinkTest, ABrokenLinkFailsItsWaiters) {
  ReplyWaiter quiet;
  quiet.tells_program = false;
  Send(&quiet);
  EXPECT_FALSE(link_->Break(cudaErrorUnknown, "gone"));
  EXPECT_TRUE(quiet.done);
  EXPECT_EQ(quiet.error, cudaErrorUnknown);
  EXPECT_FALSE(link_->AwaitsReply());
  EXPECT_EQ(link_->why_closed(), "gone");
}

TEST_F(ExecutorLinkTest, ABrokenLinkTellsTheProgramByAWaiter) {
  Send(&waiter_);
  EXPECT_TRUE(link_->Break(cudaErrorUnknown, "gone"));
}

TEST_F(ExecutorLinkTest, AttachesOnce) {
  EXPECT_TRUE(link_->BeginAttach());
  EXPECT_FALSE(link_->BeginAttach());
}

TEST_F(ExecutorLinkTest, LinksAreFoundByProcess) {
  ExecutorLinks links;
  EXPECT_EQ(links.OldestKnownVersion(7), 7u);
  const ExecutorLinkPtr second = Connect();
  links.Add("a", 1, link_);
  links.Add("a", 2, second);
  link_->set_known_version(5);
  second->set_known_version(3);
  EXPECT_EQ(links.Find("a", 1), link_);
  EXPECT_EQ(links.Find("a", 3), nullptr);
  EXPECT_EQ(links.At("a").size(), 2u);
  EXPECT_TRUE(links.At("b").empty());
  EXPECT_EQ(links.OldestKnownVersion(7), 3u);
  EXPECT_TRUE(links.Remove(second));
  EXPECT_FALSE(links.Remove(second));
  EXPECT_EQ(links.All(), std::vector{link_});
}

}  // namespace
}  // namespace torpor::shim
