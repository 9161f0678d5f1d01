// Start, end and clients of the executor's process.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <iterator>
#include <memory>
#include <semaphore>
#include <thread>
#include <vector>

#include "server/executor/execution_service.h"
#include "tests/server/executor/executor_process_fixture.h"

namespace torpor::executor {
namespace {

int ThreadsOf(pid_t process) {
  const std::string tasks = "/proc/" + std::to_string(process) + "/task";
  return static_cast<int>(std::distance(std::filesystem::directory_iterator(tasks), {}));
}

TEST_F(ExecutorProcess, RegistersAndEndsWhenAsked) {
  EXPECT_EQ(registration_->epoch(), 7u);
  EXPECT_EQ(registration_->gpu(), 0);
  EXPECT_EQ(registration_->pid(), pid_);
  EXPECT_EQ(registration_->pool_bytes(), 256 * kMiB);
  EXPECT_EQ(registration_->socket_path(), socket());
  EXPECT_EQ(registration_->device().uuid().size(), 16u);
  v1::DaemonMessage shutdown;
  shutdown.mutable_shutdown();
  EXPECT_EQ(daemon_->Do(shutdown).code(), 0);
  EXPECT_EQ(WaitForExit(), 0);
}

TEST_F(ExecutorProcess, EndsWhenTorpordGoes) {
  daemon_->Hang();
  EXPECT_EQ(WaitForExit(), 4);
}

TEST_F(ExecutorProcess, OutlivesTorpordAndRegistersWithTheNext) {
  v1::DaemonMessage outlive;
  outlive.mutable_outlive()->set_patience_ms(60'000);
  ASSERT_EQ(daemon_->Do(outlive).code(), 0);
  const TestSession session(1);
  ASSERT_EQ(Open(session), 0);
  ASSERT_EQ(SwapIn(session, 4096).code(), 0);
  ASSERT_EQ(BeginLease(session, 1), 0);
  TestClient client(socket());
  ASSERT_TRUE(client.Attach(session.id, session.key).has_value());
  daemon_.reset();
  EXPECT_EQ(client.Call(BatchBuilder().Add(wire::DeviceSynchronize{}), 1)->status, 0)
      << "nobody has ended the lease";

  daemon_ = std::make_unique<FakeDaemon>(folder_);
  const auto again = daemon_->WaitForExecutor();
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->pid(), pid_);
  EXPECT_FALSE(client.Call(BatchBuilder().Add(wire::DeviceSynchronize{}), 1).has_value());
  ASSERT_EQ(Open(session), 0) << "its memory has been let go of";
  ASSERT_EQ(SwapIn(session, 4096).code(), 0);
  v1::DaemonMessage shutdown;
  shutdown.mutable_shutdown();
  EXPECT_EQ(daemon_->Do(shutdown).code(), 0);
  EXPECT_EQ(WaitForExit(), 0);
}

TEST_F(ExecutorProcess, APingIsAnswered) {
  v1::DaemonMessage message;
  message.mutable_ping();
  EXPECT_EQ(daemon_->Do(message).code(), 0);
  kill(pid_, SIGKILL);
  WaitForExit();
  EXPECT_EQ(daemon_->Do(message).code(), -1);
}

TEST_F(ExecutorProcess, StrangersAndStaleLeasesAreRefused) {
  const TestSession session(1);
  const TestSession other(2);
  ASSERT_EQ(Open(session), 0);
  ASSERT_EQ(Open(other), 0);
  TestClient stranger(socket());
  EXPECT_FALSE(stranger.Attach(session.id, other.key).has_value());
  EXPECT_EQ(stranger.Finish().error_code(), grpc::StatusCode::PERMISSION_DENIED);

  ASSERT_EQ(SwapIn(session, 4096).code(), 0);
  ASSERT_EQ(BeginLease(session, 1), 0);
  TestClient stale(socket());
  ASSERT_TRUE(stale.Attach(session.id, session.key).has_value());
  EXPECT_FALSE(stale.Call(BatchBuilder().Add(wire::DeviceSynchronize{}), 9).has_value());
  EXPECT_EQ(stale.Finish().error_code(), grpc::StatusCode::FAILED_PRECONDITION);

  TestClient good(socket());
  ASSERT_TRUE(good.Attach(session.id, session.key).has_value()) << "others are not disturbed";
  EXPECT_EQ(good.Call(BatchBuilder().Add(wire::DeviceSynchronize{}), 1)->status, 0);
  EXPECT_EQ(SwapOut(session).code(), 9) << "never under a lease";
}

TEST_F(ExecutorProcess, StreamsWithoutASessionTakeFewThreads) {
  constexpr std::size_t kStrangers = 200;
  const TestSession session(1);
  ASSERT_EQ(Open(session), 0);
  const int threads_before = ThreadsOf(pid_);
  std::counting_semaphore<> cut(0);
  std::vector<std::unique_ptr<TestClient>> strangers;
  std::vector<std::jthread> readers;
  for (std::size_t i = 0; i < kStrangers; ++i) {
    TestClient& stranger = *strangers.emplace_back(std::make_unique<TestClient>(socket()));
    readers.emplace_back([&] {
      EXPECT_FALSE(stranger.Receive().has_value());
      cut.release();
    });
  }
  for (std::size_t i = 0; i < kStrangers - ExecutionService::kMostSilent; ++i) cut.acquire();
  // gRPC keeps a few more threads for streams to come.
  EXPECT_LT(ThreadsOf(pid_), threads_before + 2 * static_cast<int>(ExecutionService::kMostSilent));
  TestClient good(socket());
  EXPECT_TRUE(good.Attach(session.id, session.key).has_value());
  kill(pid_, SIGKILL);
  WaitForExit();
}

// Chunks whose unmapping takes an hour and more.
class FullGpu : public ExecutorProcess {
 protected:
  FullGpu()
      : ExecutorProcess({.address_mode = server::AddressMode::kTranslate,
                         .pool_bytes = 8 * kGiB,
                         .topology = "version: v1\n"
                                     "gpus: [{memory: 16GiB}]\n"
                                     "strict: {costs: true}\n"
                                     "costs: {vmm_us: {create: 0, map: 0, set_access: 0,"
                                     " unmap: 1000000}, module_ms: 0}\n"}) {}
};

TEST_F(FullGpu, EndsWithoutUnmappingItsChunks) {
  EXPECT_GT(registration_->pool_bytes(), 7 * kGiB);
  const TestSession session(1);
  ASSERT_EQ(Open(session), 0);
  ASSERT_EQ(SwapIn(session, 64 * kMiB).code(), 0);
  v1::DaemonMessage shutdown;
  shutdown.mutable_shutdown();
  EXPECT_EQ(daemon_->Do(shutdown).code(), 0);
  EXPECT_EQ(WaitForExit(), 0);
}

}  // namespace
}  // namespace torpor::executor
