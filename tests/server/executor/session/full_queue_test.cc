// Sessions whose work does not fit into the driver's queues. Streams are held: nothing ends before
// the test says so.
#include <driver_types.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "tests/server/executor/session/batch_test.h"

namespace torpor::executor {
namespace {

// At this depth a driver's launch waits, and its other calls may wait for the launch.
constexpr std::size_t kQueueDepth = 1024;
constexpr std::size_t kLaunches = 5000;

struct FirstReply final : ReplySink {
  void Send(std::span<const std::uint8_t>) override {
    if (!std::exchange(is_sent, true)) sent.set_value();
  }
  std::promise<void> sent;
  bool is_sent = false;
};

class FullQueueTest : public BatchTest {
 protected:
  void SetUp() override { ASSERT_NO_FATAL_FAILURE(LoadKernel()); }

  // The frame of the batch with so many launches on top.
  std::vector<std::uint8_t> AddLaunches(BatchBuilder batch) const {
    const std::uint64_t value = 1;
    for (std::size_t i = 0; i < kLaunches; ++i) batch.Add(Launch(value));
    return batch.Frame(kLease);
  }
  // Runs a frame whose first command is answered, on a thread of its own; ends the lease once the
  // answer is there. Returns how the batch ended.
  absl::Status EndLeaseDuring(const std::vector<std::uint8_t>& frame) {
    FirstReply replies;
    absl::Status status;
    std::thread client([&] { status = s_.session->RunFrame(frame, replies); });
    replies.sent.get_future().wait();
    // The work never ends by itself.
    EXPECT_FALSE(s_.session->EndLease({kLease}, SteadyClock().Now()).ok());
    client.join();
    return status;
  }
};

TEST_F(FullQueueTest, ABatchRunsAsFarAsThereIsRoom) {
  const std::vector<std::uint8_t> code = EmptyFatbin();
  wire::ModuleUse use;
  use.module = 1;
  use.hash = Sha256(code.data(), code.size());
  wire::KernelCreate create;
  create.kernel = 2;
  create.module = 1;
  create.name = "record";
  const std::vector<std::uint8_t> frame = AddLaunches(BatchBuilder().Add(use).Add(create));
  const std::atomic<std::uint64_t> lease = kLease;
  BatchRunner runner(*s_.device, *s_.modules, s_.libraries, s_.output, *s_.memory, lease);
  s_.cuda.HoldStreams();
  ReceivedBatch batch = *ReadBatch(frame);
  int parts = 0;
  while (!batch.IsDone()) {
    ASSERT_LT(++parts, 100);
    const std::size_t before = batch.header.command_count;
    ASSERT_TRUE(runner.Run(batch, s_.replies).ok());
    EXPECT_LT(before - batch.header.command_count, kQueueDepth);
    s_.cuda.Release();
  }
  EXPECT_EQ(s_.cuda.launches().size(), kLaunches);
}

TEST_F(FullQueueTest, AnEndedLeaseEndsABatchThatWaitsForRoom) {
  const auto frame = AddLaunches(BatchBuilder().Add(wire::StreamSynchronize{}));
  s_.cuda.HoldStreams();
  EXPECT_TRUE(absl::IsFailedPrecondition(EndLeaseDuring(frame)));
  s_.cuda.Release();
  EXPECT_LT(s_.cuda.launches().size(), kQueueDepth);
}

TEST_F(FullQueueTest, ASessionClosesWhileABatchWaitsForRoom) {
  FirstReply replies;
  const auto frame = AddLaunches(BatchBuilder().Add(wire::StreamSynchronize{}));
  wire::Attach attach;
  attach.session_id = 1;
  attach.session_key = s_.identity.key;
  ASSERT_TRUE(s_.session->Attach(attach, [] {}).ok());
  s_.cuda.HoldStreams();
  std::thread client([&] {
    EXPECT_TRUE(absl::IsFailedPrecondition(s_.session->RunFrame(frame, replies)));
    // Waiting work may end, since no work follows.
    s_.cuda.Release();
    s_.session->Detach();
  });
  replies.sent.get_future().wait();
  EXPECT_TRUE(s_.session->Close(SteadyClock().Now() + std::chrono::minutes(1)).ok());
  client.join();
  EXPECT_LT(s_.cuda.launches().size(), kQueueDepth);
}

// A node's command is issued as there is room, not as the batch's one command.
TEST_F(FullQueueTest, AnEndedLeaseEndsAGraphThatWaitsForRoom) {
  const std::uint64_t value = 1;
  const wire::GraphCommand launch = {wire::LaunchKernel::kCallId, wire::Encoded(Launch(value))};
  std::vector<wire::GraphNode> nodes(kLaunches, {{launch}, {}});
  for (std::uint32_t i = 1; i < kLaunches; ++i) nodes[i].dependencies = {i - 1};
  ASSERT_TRUE(s_.Run(BatchBuilder()
                         .Add(wire::GraphCreate{20})
                         .Add(wire::GraphAddNodes{20, 0, nodes})
                         .Frame(kLease))
                  .ok());
  s_.cuda.HoldStreams();
  const absl::Status ended = EndLeaseDuring(BatchBuilder()
                                                .Add(wire::StreamSynchronize{})
                                                .Add(wire::GraphLaunch{20, 0})
                                                .Add(Launch(value))
                                                .Frame(kLease));
  EXPECT_TRUE(absl::IsFailedPrecondition(ended));
  s_.cuda.Release();
  EXPECT_LT(s_.cuda.launches().size(), kQueueDepth);
}

TEST_F(FullQueueTest, AGraphLargerThanTheRoomRuns) {
  const std::uint64_t value = 1;
  const wire::GraphCommand launch = {wire::LaunchKernel::kCallId, wire::Encoded(Launch(value))};
  const std::vector<wire::GraphNode> nodes(kLaunches, {{launch}, {}});
  ASSERT_TRUE(s_.Run(BatchBuilder()
                         .Add(wire::GraphCreate{20})
                         .Add(wire::GraphAddNodes{20, 0, nodes})
                         .Add(wire::GraphLaunch{20, 0})
                         .Frame(kLease))
                  .ok());
  EXPECT_EQ(s_.cuda.launches().size(), kLaunches);
}

}  // namespace
}  // namespace torpor::executor
