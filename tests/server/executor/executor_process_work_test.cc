// Work without a good end in the executor's process: lost contexts, a full queue.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <future>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/server/executor/executor_process_fixture.h"

namespace torpor::executor {
namespace {

constexpr std::uint64_t kIllegalAddress = 700;

TEST_F(ExecutorProcess, AWildKernelCostsTheContextAndSaysSo) {
  const TestSession session(1);
  TestClient client(socket());
  const auto reply = client.Call(WildLaunch(session, client).Add(wire::DeviceSynchronize{}), 1);
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->status, static_cast<int>(kIllegalAddress)) << reply->message;
  EXPECT_EQ(reply->async_error_is_sticky, 1u);
  const auto lost = daemon_->WaitForContextLost();
  ASSERT_TRUE(lost.has_value());
  EXPECT_EQ(lost->session_id(), session.id);
  EXPECT_EQ(session.page().sticky_error.load(), kIllegalAddress);
  EXPECT_EQ(WaitForExit(), 3);
}

TEST_F(ExecutorProcess, AWildKernelIsNoticedWithoutACall) {
  const TestSession session(1);
  TestClient client(socket());
  ASSERT_TRUE(client.Send(WildLaunch(session, client).Frame(1)));
  EXPECT_TRUE(daemon_->WaitForContextLost().has_value());
  EXPECT_EQ(WaitForExit(), 3);
}

// A driver whose launches wait while 1024 pieces of work are unfinished.
class FullQueue : public ExecutorProcess {
 protected:
  FullQueue()
      : ExecutorProcess({.topology = "version: v1\n"
                                     "gpus: [{memory: 1GiB}]\n"
                                     "strict: {launch_queues: true}\n"}) {}

  // Opens the session under lease 1, with kernel 2.
  void Prepare(const TestSession& session, TestClient& client, const std::string& function) {
    ASSERT_EQ(Open(session, function), 0);
    ASSERT_EQ(SwapIn(session, 4096).code(), 0);
    ASSERT_EQ(BeginLease(session, 1), 0);
    ASSERT_TRUE(client.Attach(session.id, session.key).has_value());
    LoadModule(client, 1, KERNELS_FATBIN, 1, {});
    wire::KernelCreate create;
    create.kernel = 2;
    create.module = 1;
    create.name = "poke";
    ASSERT_EQ(client.Call(BatchBuilder().Add(create).Add(wire::DeviceSynchronize{}), 1)->status, 0);
  }
  static wire::StreamMark Mark(std::uint32_t slot, std::uint64_t value) {
    wire::StreamMark mark;
    mark.slot = slot;
    mark.value = value;
    return mark;
  }
};

TEST_F(FullQueue, ALeaseEndsBehindWorkThatWaitsForTheHost) {
  constexpr std::uint32_t kBegun = 1;
  constexpr std::uint32_t kAwaited = 2;
  constexpr std::uint32_t kLaunched = 3;
  constexpr std::uint64_t kLaunches = 5000;
  const TestSession session(1);
  TestClient client(socket());
  ASSERT_NO_FATAL_FAILURE(Prepare(session, client, "waiting"));
  const auto parameters = Pack(8, std::pair{0ul, session.device_base()});
  BatchBuilder batch;
  batch.Add(Mark(kBegun, 1)).Add(wire::StreamWaitMark{0, session.id, kAwaited, 1});
  for (std::uint64_t i = 1; i <= kLaunches; ++i) {
    batch.Add(Launch(2, parameters)).Add(Mark(kLaunched, i));
  }
  ASSERT_TRUE(client.Send(batch.Frame(1)));
  while (session.page().slots[kBegun].load() == 0) std::this_thread::yield();

  // Another session's work goes on.
  const TestSession other(2);
  TestClient other_client(socket());
  ASSERT_NO_FATAL_FAILURE(Prepare(other, other_client, "other"));
  wire::MemcpyDtoH download;
  download.src = other.device_base();
  download.bytes = sizeof(std::uint32_t);
  download.window_offset = wire::kReplyInline;
  const auto poked = other_client.Call(
      BatchBuilder().Add(Launch(2, Pack(8, std::pair{0ul, other.device_base()}))).Add(download), 1);
  ASSERT_TRUE(poked.has_value());
  EXPECT_EQ(ResultOf<wire::MemcpyDtoHResult>(*poked).data, (std::vector<std::uint8_t>{1, 0, 0, 0}));

  // The lease ends, and with it the batch, though none of the work can.
  std::future<int> end = std::async(std::launch::async, [&] { return EndLease(session, 1); });
  auto ended = std::async(std::launch::async, [&] { return client.Receive().has_value(); });
  const bool has_ended = ended.wait_for(std::chrono::seconds(15)) == std::future_status::ready;
  EXPECT_TRUE(has_ended) << "a thread waits in a launch";
  EXPECT_EQ(session.page().slots[kLaunched].load(), 0U);
  session.page().slots[kAwaited].store(1);
  EXPECT_FALSE(ended.get());
  EXPECT_EQ(end.get(), 0);
  EXPECT_GT(session.page().slots[kLaunched].load(), 100U);
  EXPECT_LT(session.page().slots[kLaunched].load(), 1024U);
}

}  // namespace
}  // namespace torpor::executor
