#include "client_shim/core/session.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "proto/cuda_api/cudart_commands.h"
#include "tests/client_shim/fake_daemon.h"
#include "tests/client_shim/fake_executor.h"

namespace torpor::shim {
namespace {

using testing::FakeDaemon;
using testing::FakeExecutor;
using testing::ReceivedCommand;

constexpr auto kAttach = static_cast<std::uint32_t>(wire::ProtocolCall::kAttach);
constexpr auto kDrain = static_cast<std::uint32_t>(wire::ProtocolCall::kDrain);
constexpr std::chrono::milliseconds kNever{3600 * 1000};

template <typename T>
std::vector<std::uint8_t> Encoded(const T& message) {
  std::vector<std::uint8_t> fields;
  fields.reserve(512);
  wire::Writer{fields}(message);
  return fields;
}

std::vector<std::uint32_t> CallIds(const std::vector<ReceivedCommand>& commands) {
  std::vector<std::uint32_t> ids;
  for (const ReceivedCommand& command : commands) ids.push_back(command.call_id);
  return ids;
}

class SessionTest : public ::testing::Test {
 protected:
  SessionTest() : SessionTest(FakeDaemon::Script{}) {}
  explicit SessionTest(const FakeDaemon::Script& script) : daemon_(script) {
    settings_.socket = daemon_.socket();
    settings_.log = LogLevel::kOff;
    settings_.lease_idle = kNever;
    settings_.flush_after = std::chrono::microseconds(200);
    first_ = MakeExecutor("first");
    second_ = MakeExecutor("second");
    daemon_.set_auto_grant(first_.get());
  }

  std::unique_ptr<FakeExecutor> MakeExecutor(const std::string& name) {
    auto executor = std::make_unique<FakeExecutor>(
        daemon_.folder() + "/" + name + ".sock",
        std::set<std::uint32_t>{kAttach, kDrain, wire::DeviceSynchronize::kCallId,
                                wire::StreamSynchronize::kCallId});
    executor->set_page(daemon_.page());
    return executor;
  }

  cudaError_t Start() {
    session_ = std::make_unique<Session>([this] { return settings_; });
    return session_->Start();
  }
  cudaError_t Launch(std::uint32_t grid = 1) {
    wire::LaunchKernel launch;
    launch.grid = {grid, 1, 1};
    const auto fields = Encoded(launch);
    return session_->Enqueue({wire::LaunchKernel::kCallId, fields});
  }
  cudaError_t Synchronize() {
    CallReply reply;
    const cudaError_t error = session_->Call({wire::DeviceSynchronize::kCallId, {}}, reply);
    return error != cudaSuccess ? error : static_cast<cudaError_t>(reply.status);
  }
  std::uint64_t CreateStream() {
    wire::StreamCreate create;
    create.stream = session_->MintHandle(HandleKind::kStream);
    EXPECT_EQ(session_->Create(create.stream, {wire::StreamCreate::kCallId, Encoded(create)}),
              cudaSuccess);
    return create.stream;
  }

  FakeDaemon daemon_;
  std::unique_ptr<FakeExecutor> first_;
  std::unique_ptr<FakeExecutor> second_;
  Settings settings_;
  std::unique_ptr<Session> session_;
};

TEST_F(SessionTest, OpensAndTellsWhoItIs) {
  settings_.token = "secret";
  ASSERT_EQ(Start(), cudaSuccess);
  const auto hello = daemon_.Await<wire::Hello>();
  EXPECT_EQ(hello.token, "secret");
  EXPECT_EQ(hello.process_id, static_cast<std::uint64_t>(getpid()));
  EXPECT_EQ(daemon_.Await<wire::HelloAck>().error, 0);
  EXPECT_EQ(session_->session().devices.at(0).name, "Fake GPU");
}

TEST_F(SessionTest, ACallGetsALeaseAndAReply) {
  ASSERT_EQ(Start(), cudaSuccess);
  EXPECT_EQ(Launch(), cudaSuccess);
  EXPECT_EQ(Synchronize(), cudaSuccess);
  EXPECT_EQ(CallIds(first_->commands()),
            (std::vector<std::uint32_t>{kAttach, wire::LaunchKernel::kCallId,
                                        wire::DeviceSynchronize::kCallId}));
  EXPECT_EQ(daemon_.Await<wire::LeaseAck>().lease_id, 1u);
}

TEST_F(SessionTest, WithoutADaemonThereIsNoDevice) {
  settings_.socket = daemon_.folder() + "/nobody.sock";
  EXPECT_EQ(Start(), cudaErrorNoDevice);
  EXPECT_EQ(Launch(), cudaErrorNoDevice);
  EXPECT_EQ(Synchronize(), cudaErrorNoDevice);
}

TEST_F(SessionTest, TheTimerSendsWhatNobodySynchronises) {
  ASSERT_EQ(Start(), cudaSuccess);
  ASSERT_EQ(Launch(7), cudaSuccess);
  first_->Await(wire::LaunchKernel::kCallId);
}

TEST_F(SessionTest, AFullBatchLeavesByItself) {
  settings_.flush_after = std::chrono::hours(1);
  settings_.batch_bytes = 1024;
  ASSERT_EQ(Start(), cudaSuccess);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(Launch(), cudaSuccess);
  first_->Await(wire::LaunchKernel::kCallId, 50);
  EXPECT_GT(first_->frames(), 2u);
}

TEST_F(SessionTest, CommandsOfOneBatchTravelInOneFrame) {
  settings_.flush_after = std::chrono::hours(1);
  ASSERT_EQ(Start(), cudaSuccess);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(Launch(), cudaSuccess);
  ASSERT_EQ(Synchronize(), cudaSuccess);
  EXPECT_EQ(first_->frames(), 2u);  // kAttach travels alone
}

TEST_F(SessionTest, ALongStreamOfCommandsPassesFlowControl) {
  ASSERT_EQ(Start(), cudaSuccess);
  constexpr int kCommands = 50'000;  // some 6 MB, far more than any window or socket buffer
  for (int i = 0; i < kCommands; ++i) ASSERT_EQ(Launch(), cudaSuccess);
  ASSERT_EQ(Synchronize(), cudaSuccess);
  EXPECT_EQ(first_->commands().size(), kCommands + 2u);
}

TEST_F(SessionTest, ASlowExecutorHoldsCallsBackAndLosesNothing) {
  ASSERT_EQ(Start(), cudaSuccess);
  ASSERT_EQ(Synchronize(), cudaSuccess);
  first_->Pause();
  constexpr int kCommands = 40'000;
  std::thread launcher([&] {
    for (int i = 0; i < kCommands; ++i) ASSERT_EQ(Launch(), cudaSuccess);
  });
  first_->Await(wire::LaunchKernel::kCallId);
  first_->Resume();
  launcher.join();
  ASSERT_EQ(Synchronize(), cudaSuccess);
  EXPECT_EQ(first_->commands().size(), kCommands + 3u);
}

TEST_F(SessionTest, RepliesCarryResultsAndErrors) {
  first_->set_answer([](const ReceivedCommand& command) {
    wire::Reply reply;
    if (command.call_id == wire::DeviceSynchronize::kCallId) {
      reply.status = cudaErrorInvalidValue;
      reply.message = "no";
      reply.result = {1, 2, 3};
    }
    return reply;
  });
  ASSERT_EQ(Start(), cudaSuccess);
  CallReply reply;
  ASSERT_EQ(session_->Call({wire::DeviceSynchronize::kCallId, {}}, reply), cudaSuccess);
  EXPECT_EQ(reply.status, cudaErrorInvalidValue);
  EXPECT_EQ(reply.message, "no");
  EXPECT_EQ(reply.result, (std::vector<std::uint8_t>{1, 2, 3}));
}

TEST_F(SessionTest, AnAsynchronousErrorIsTakenOnce) {
  first_->set_answer([](const ReceivedCommand&) {
    wire::Reply reply;
    reply.async_error = cudaErrorInvalidValue;
    return reply;
  });
  ASSERT_EQ(Start(), cudaSuccess);
  ASSERT_EQ(Synchronize(), cudaSuccess);
  EXPECT_EQ(session_->TakeAsyncError(), cudaErrorInvalidValue);
  EXPECT_EQ(session_->TakeAsyncError(), cudaSuccess);
}

TEST_F(SessionTest, AStickyErrorStays) {
  first_->set_answer([](const ReceivedCommand& command) {
    wire::Reply reply;
    if (command.call_id != wire::DeviceSynchronize::kCallId) return reply;
    reply.async_error = cudaErrorIllegalAddress;
    reply.async_error_is_sticky = 1;
    return reply;
  });
  ASSERT_EQ(Start(), cudaSuccess);
  Synchronize();
  EXPECT_EQ(session_->TakeAsyncError(), cudaErrorIllegalAddress);
  EXPECT_EQ(session_->TakeAsyncError(), cudaErrorIllegalAddress);
  EXPECT_EQ(Launch(), cudaErrorIllegalAddress);
  EXPECT_EQ(session_->Start(), cudaErrorIllegalAddress);
}

TEST_F(SessionTest, TheCompletionPageTellsOfAStickyError) {
  ASSERT_EQ(Start(), cudaSuccess);
  daemon_.page()->sticky_error = cudaErrorIllegalAddress;
  EXPECT_EQ(Launch(), cudaErrorIllegalAddress);
}

// Leases.

TEST_F(SessionTest, AnExplicitGrantIsAcknowledgedBeforeAnyCall) {
  ASSERT_EQ(Start(), cudaSuccess);
  daemon_.Await<wire::HelloAck>();
  const std::uint64_t lease = daemon_.Grant(*first_, /*is_explicit=*/true);
  EXPECT_EQ(daemon_.Await<wire::LeaseAck>().lease_id, lease);
  first_->Await(kAttach);
  EXPECT_EQ(Synchronize(), cudaSuccess);
  EXPECT_EQ(daemon_.Count<wire::LeaseRequest>(), 0u);
}

TEST_F(SessionTest, ARevokedLeaseComesBackDrained) {
  ASSERT_EQ(Start(), cudaSuccess);
  ASSERT_EQ(Launch(), cudaSuccess);
  const std::uint64_t lease = daemon_.Await<wire::LeaseAck>().lease_id;
  daemon_.Send(wire::LeaseRevoke{lease});
  EXPECT_EQ(daemon_.Await<wire::LeaseReturned>().lease_id, lease);
  const auto commands = first_->commands();
  EXPECT_EQ(commands.back().call_id, kDrain);
  EXPECT_EQ(commands.back().lease_id, lease);
  EXPECT_TRUE(session_->IsDrained());
  // The next call asks anew and uses the same connection.
  ASSERT_EQ(Synchronize(), cudaSuccess);
  EXPECT_EQ(first_->commands().back().lease_id, lease + 1);
}

TEST_F(SessionTest, CallsWaitBetweenLeases) {
  daemon_.set_auto_grant(nullptr);
  ASSERT_EQ(Start(), cudaSuccess);
  cudaError_t result = cudaErrorUnknown;
  std::thread caller([&] { result = Synchronize(); });
  daemon_.Await<wire::LeaseRequest>();
  daemon_.Grant(*second_, /*is_explicit=*/false);
  caller.join();
  EXPECT_EQ(result, cudaSuccess);
}

TEST_F(SessionTest, AnIdleImplicitLeaseIsReturned) {
  settings_.lease_idle = std::chrono::milliseconds(1);
  ASSERT_EQ(Start(), cudaSuccess);
  ASSERT_EQ(Launch(), cudaSuccess);
  daemon_.Await<wire::LeaseReturned>();
  EXPECT_EQ(first_->commands().back().call_id, kDrain);
}

TEST_F(SessionTest, ALostLeaseFailsItsCallsAndTheNextOneWorks) {
  ASSERT_EQ(Start(), cudaSuccess);
  ASSERT_EQ(Launch(), cudaSuccess);
  const std::uint64_t lease = daemon_.Await<wire::LeaseAck>().lease_id;
  first_->Await(wire::LaunchKernel::kCallId);
  daemon_.set_auto_grant(second_.get());
  daemon_.Send(wire::LeaseLost{lease, cudaErrorUnknown, false, "the executor died"});
  while (Launch() == cudaSuccess) {
  }
  EXPECT_EQ(Synchronize(), cudaErrorUnknown);
  EXPECT_EQ(Synchronize(), cudaSuccess);
  EXPECT_EQ(CallIds(second_->commands()),
            (std::vector<std::uint32_t>{kAttach, wire::DeviceSynchronize::kCallId}));
}

TEST_F(SessionTest, TheCallsOfALostExplicitLeaseFailUntilTheNextGrant) {
  ASSERT_EQ(Start(), cudaSuccess);
  daemon_.Await<wire::HelloAck>();
  const std::uint64_t lease = daemon_.Grant(*first_, /*is_explicit=*/true);
  daemon_.Await<wire::LeaseAck>();
  daemon_.Send(wire::LeaseLost{lease, cudaErrorUnknown, false, "the executor died"});
  while (Synchronize() == cudaSuccess) {
  }
  EXPECT_EQ(Synchronize(), cudaErrorUnknown);
  EXPECT_EQ(Launch(), cudaErrorUnknown);
  daemon_.Grant(*second_, /*is_explicit=*/true);
  daemon_.Await<wire::LeaseAck>();
  EXPECT_EQ(Synchronize(), cudaSuccess);
}

TEST_F(SessionTest, AnExecutorThatDiesFailsTheCallThatWaits) {
  ASSERT_EQ(Start(), cudaSuccess);
  ASSERT_EQ(Synchronize(), cudaSuccess);
  first_->Pause();
  cudaError_t result = cudaSuccess;
  std::thread caller([&] { result = Synchronize(); });
  first_->Await(wire::DeviceSynchronize::kCallId, 2);
  first_->set_answer([](const ReceivedCommand&) { return wire::Reply{}; });
  std::thread killer([&] { first_->Die(); });
  killer.join();
  caller.join();
  // Either the answer was on its way or the connection was found broken.
  EXPECT_TRUE(result == cudaSuccess || result == cudaErrorDevicesUnavailable) << result;
}

TEST_F(SessionTest, AStickyLossIsForEver) {
  ASSERT_EQ(Start(), cudaSuccess);
  ASSERT_EQ(Synchronize(), cudaSuccess);
  const std::uint64_t lease = daemon_.Await<wire::LeaseAck>().lease_id;
  daemon_.Send(wire::LeaseLost{lease, cudaErrorIllegalAddress, true, "a kernel went astray"});
  while (Synchronize() == cudaSuccess) {
  }
  EXPECT_EQ(Synchronize(), cudaErrorIllegalAddress);
  EXPECT_EQ(Launch(), cudaErrorIllegalAddress);
}

TEST_F(SessionTest, AnExecutorThatCannotBeReachedGivesTheLeaseBack) {
  ASSERT_EQ(Start(), cudaSuccess);
  daemon_.Await<wire::HelloAck>();
  const auto gone = MakeExecutor("gone");
  gone->Die();
  const std::uint64_t lease = daemon_.Grant(*gone, /*is_explicit=*/true);
  EXPECT_EQ(daemon_.Await<wire::LeaseReturned>().lease_id, lease);
  EXPECT_EQ(Synchronize(), cudaErrorDevicesUnavailable);
  daemon_.Grant(*first_, /*is_explicit=*/true);
  daemon_.Await<wire::LeaseAck>();
  EXPECT_EQ(Synchronize(), cudaSuccess);
}

TEST_F(SessionTest, ALostDaemonFailsEveryCallAndHangsNone) {
  daemon_.set_auto_grant(nullptr);
  ASSERT_EQ(Start(), cudaSuccess);
  cudaError_t waiting = cudaSuccess;
  std::thread caller([&] { waiting = Synchronize(); });
  daemon_.Await<wire::LeaseRequest>();
  daemon_.Stop();
  caller.join();
  EXPECT_EQ(waiting, cudaErrorDevicesUnavailable);
  std::uint64_t address = 0;
  EXPECT_EQ(session_->Malloc(16, address), cudaErrorDevicesUnavailable);
  EXPECT_EQ(session_->Start(), cudaErrorDevicesUnavailable);
}

// The journal.

TEST_F(SessionTest, AnotherExecutorIsToldOfWhatLives) {
  ASSERT_EQ(Start(), cudaSuccess);
  const std::uint64_t kept = CreateStream();
  const std::uint64_t gone = CreateStream();
  ASSERT_EQ(session_->Configure(kept, {wire::FuncSetAttribute::kCallId,
                                       Encoded(wire::FuncSetAttribute{kept, 1, 1})}),
            cudaSuccess);
  ASSERT_EQ(session_->Configure(kept, {wire::FuncSetAttribute::kCallId,
                                       Encoded(wire::FuncSetAttribute{kept, 1, 2})}),
            cudaSuccess);
  ASSERT_EQ(
      session_->Destroy(gone, {wire::StreamDestroy::kCallId, Encoded(wire::StreamDestroy{gone})}),
      cudaSuccess);
  EXPECT_EQ(session_->Destroy(gone, {wire::StreamDestroy::kCallId, {}}),
            cudaErrorInvalidResourceHandle);
  ASSERT_EQ(Synchronize(), cudaSuccess);
  const std::uint64_t lease = daemon_.Await<wire::LeaseAck>().lease_id;
  daemon_.set_auto_grant(second_.get());
  daemon_.Send(wire::LeaseRevoke{lease});
  daemon_.Await<wire::LeaseReturned>();
  ASSERT_EQ(Synchronize(), cudaSuccess);
  const auto commands = second_->commands();
  EXPECT_EQ(CallIds(commands), (std::vector<std::uint32_t>{kAttach, wire::StreamCreate::kCallId,
                                                           wire::FuncSetAttribute::kCallId,
                                                           wire::DeviceSynchronize::kCallId}));
  wire::FuncSetAttribute setting;
  wire::Reader reader(commands[2].fields);
  reader(setting);
  EXPECT_EQ(setting.value, 2);
  EXPECT_TRUE(session_->IsLive(kept));
  EXPECT_FALSE(session_->IsLive(gone));
}

TEST_F(SessionTest, AnExecutorHearsOfWhatWasDestroyedMeanwhile) {
  ASSERT_EQ(Start(), cudaSuccess);
  const std::uint64_t stream = CreateStream();
  ASSERT_EQ(Synchronize(), cudaSuccess);
  const std::uint64_t lease = daemon_.Await<wire::LeaseAck>().lease_id;
  daemon_.Send(wire::LeaseRevoke{lease});
  daemon_.Await<wire::LeaseReturned>();
  ASSERT_EQ(session_->Destroy(stream,
                              {wire::StreamDestroy::kCallId, Encoded(wire::StreamDestroy{stream})}),
            cudaSuccess);
  ASSERT_EQ(Synchronize(), cudaSuccess);
  first_->Await(wire::StreamDestroy::kCallId);
}

TEST_F(SessionTest, EventsMoveAsCompleteWithTheirTimes) {
  ASSERT_EQ(Start(), cudaSuccess);
  wire::EventCreate create;
  create.event = session_->MintHandle(HandleKind::kEvent);
  session_->Create(create.event, {wire::EventCreate::kCallId, Encoded(create)});
  first_->set_answer([&](const ReceivedCommand& command) {
    wire::Reply reply;
    if (command.call_id == kDrain) reply.result = Encoded(wire::DrainReply{{{create.event, 77}}});
    return reply;
  });
  ASSERT_EQ(Synchronize(), cudaSuccess);
  const std::uint64_t lease = daemon_.Await<wire::LeaseAck>().lease_id;
  daemon_.set_auto_grant(second_.get());
  daemon_.Send(wire::LeaseRevoke{lease});
  daemon_.Await<wire::LeaseReturned>();
  ASSERT_EQ(Synchronize(), cudaSuccess);
  const auto commands = second_->Await(wire::EventImport::kCallId);
  wire::EventImport import;
  wire::Reader reader(commands[2].fields);
  reader(import);
  EXPECT_EQ(import.event, create.event);
  EXPECT_EQ(import.completed_ns, 77);
}

// Shared memory.

TEST_F(SessionTest, TheWindowIsReusedRoundAndRound) {
  ASSERT_EQ(Start(), cudaSuccess);
  constexpr std::uint64_t kBytes = std::uint64_t{8} << 20;  // eight times the whole window
  for (std::uint64_t at = 0; at < kBytes;) {
    WindowPiece piece;
    ASSERT_EQ(session_->AcquireWindow(kBytes - at, piece), cudaSuccess);
    ASSERT_GE(piece.bytes, 1u);
    std::fill_n(piece.data, piece.bytes, std::uint8_t{0xcd});
    wire::MemcpyHtoD copy;
    copy.bytes = piece.bytes;
    copy.payload = wire::Payload::kWindow;
    copy.offset = piece.offset;
    copy.slot = piece.slot;
    copy.value = piece.value;
    const auto fields = Encoded(copy);
    ASSERT_EQ(session_->Enqueue({wire::MemcpyHtoD::kCallId, fields, &piece}), cudaSuccess);
    at += piece.bytes;
  }
  EXPECT_EQ(Synchronize(), cudaSuccess);
}

TEST_F(SessionTest, PiecesOfALostLeaseComeBack) {
  ASSERT_EQ(Start(), cudaSuccess);
  first_->set_page(nullptr);  // nothing ever completes
  std::vector<WindowPiece> filling(1);
  ASSERT_EQ(session_->AcquireWindow(64, filling[0]), cudaSuccess);
  for (int i = 0; i < 3; ++i) {
    WindowPiece piece;
    ASSERT_EQ(session_->AcquireWindow(200'000, piece), cudaSuccess);
    wire::MemcpyHtoD copy;
    copy.slot = piece.slot;
    copy.value = piece.value;
    const auto fields = Encoded(copy);
    ASSERT_EQ(session_->Enqueue({wire::MemcpyHtoD::kCallId, fields, &piece}), cudaSuccess);
  }
  first_->Await(wire::MemcpyHtoD::kCallId, 3);
  const std::uint64_t lease = daemon_.Await<wire::LeaseAck>().lease_id;
  daemon_.Send(wire::LeaseLost{lease, cudaErrorUnknown, false, "gone"});
  session_->ReleaseWindow(filling[0]);
  // More than was left: it takes the lost pieces' room.
  for (int i = 0; i < 3; ++i) {
    WindowPiece piece;
    ASSERT_EQ(session_->AcquireWindow(200'000, piece), cudaSuccess);
    session_->ReleaseWindow(piece);
  }
}

TEST_F(SessionTest, AllocationsAreFoundByAddress) {
  ASSERT_EQ(Start(), cudaSuccess);
  std::uint64_t device = 0;
  std::uint64_t host = 0;
  ASSERT_EQ(session_->Malloc(1000, device), cudaSuccess);
  ASSERT_EQ(session_->HostAlloc(5000, host), cudaSuccess);
  ClientCore::Allocation found;
  ASSERT_TRUE(session_->FindAllocation(device + 999, found));
  EXPECT_TRUE(found.on_device);
  EXPECT_EQ(found.begin, device);
  EXPECT_FALSE(session_->FindAllocation(device + 1000, found));
  ASSERT_TRUE(session_->FindAllocation(host, found));
  EXPECT_FALSE(found.on_device);
  *reinterpret_cast<std::uint64_t*>(host) = 42;  // it is real memory

  EXPECT_EQ(session_->HostFree(device), cudaErrorInvalidValue);
  EXPECT_EQ(session_->Free(device), cudaSuccess);
  EXPECT_EQ(session_->Free(device), cudaErrorInvalidValue);
  EXPECT_EQ(session_->HostFree(host), cudaSuccess);
  std::uint64_t free_bytes = 0;
  std::uint64_t total_bytes = 0;
  EXPECT_EQ(session_->MemGetInfo(free_bytes, total_bytes), cudaSuccess);
  EXPECT_EQ(total_bytes, FakeDaemon::kDeviceBytes);
}

TEST_F(SessionTest, SlotsOfALostLeaseCountAsReached) {
  ASSERT_EQ(Start(), cudaSuccess);
  first_->set_page(nullptr);
  const std::uint32_t slot = session_->AllotSlot();
  ASSERT_NE(slot, 0u);
  const std::uint64_t value = session_->NextSlotValue(slot);
  ASSERT_EQ(
      session_->Enqueue({wire::StreamMark::kCallId, Encoded(wire::StreamMark{0, slot, value})}),
      cudaSuccess);
  first_->Await(wire::StreamMark::kCallId);
  EXPECT_LT(session_->SlotValue(slot), value);
  const std::uint64_t lease = daemon_.Await<wire::LeaseAck>().lease_id;
  daemon_.Send(wire::LeaseLost{lease, cudaErrorUnknown, false, "gone"});
  while (session_->SlotValue(slot) < value) std::this_thread::yield();
  EXPECT_EQ(session_->TakeAsyncError(), cudaErrorUnknown);
  EXPECT_EQ(session_->TakeAsyncError(), cudaSuccess);
}

// Threads, processes, hostile peers.

TEST_F(SessionTest, ManyThreadsShareTheSession) {
  ASSERT_EQ(Start(), cudaSuccess);
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      const std::uint64_t stream = session_->PerThreadStream();
      EXPECT_EQ(stream, session_->PerThreadStream());
      for (int i = 0; i < 50; ++i) {
        for (int j = 0; j < 10; ++j) EXPECT_EQ(Launch(), cudaSuccess);
        std::uint64_t address = 0;
        if (i % 10 == 0) {
          EXPECT_EQ(session_->Malloc(64, address), cudaSuccess);
        }
        EXPECT_EQ(Synchronize(), cudaSuccess);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(first_->Await(wire::LaunchKernel::kCallId, 4000).size(), 1u + 8 + 4000 + 400);
}

TEST_F(SessionTest, RevokesCannotDisturbManyThreads) {
  ASSERT_EQ(Start(), cudaSuccess);
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      while (!stop) {
        EXPECT_EQ(Launch(), cudaSuccess);
        EXPECT_EQ(Synchronize(), cudaSuccess);
      }
    });
  }
  for (int i = 0; i < 50; ++i) {
    const std::uint64_t lease = daemon_.Await<wire::LeaseAck>().lease_id;
    daemon_.set_auto_grant(i % 2 == 0 ? second_.get() : first_.get());
    daemon_.Send(wire::LeaseRevoke{lease});
    EXPECT_EQ(daemon_.Await<wire::LeaseReturned>().lease_id, lease);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

TEST_F(SessionTest, AForkedChildFailsAndLeavesTheParentAlone) {
  ASSERT_EQ(Start(), cudaSuccess);
  ASSERT_EQ(Synchronize(), cudaSuccess);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::uint64_t address = 0;
    const bool refused = session_->Start() == cudaErrorInitializationError &&
                         Launch() == cudaErrorInitializationError &&
                         Synchronize() == cudaErrorInitializationError &&
                         session_->Malloc(1, address) == cudaErrorInitializationError;
    _exit(refused ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(Synchronize(), cudaSuccess);
}

TEST_F(SessionTest, ANonsenseReplyEndsTheLease) {
  ASSERT_EQ(Start(), cudaSuccess);
  ASSERT_EQ(Synchronize(), cudaSuccess);
  daemon_.set_auto_grant(second_.get());
  first_->SendRaw("nonsense");
  EXPECT_EQ(Synchronize(), cudaErrorDevicesUnavailable);
}

TEST_F(SessionTest, ANonsenseMessageEndsTheSession) {
  ASSERT_EQ(Start(), cudaSuccess);
  daemon_.Await<wire::HelloAck>();
  daemon_.SendRaw("nonsense");
  while (session_->Start() == cudaSuccess) std::this_thread::yield();
  EXPECT_EQ(session_->Start(), cudaErrorDevicesUnavailable);
}

class RefusingDaemonTest : public SessionTest {
 protected:
  RefusingDaemonTest() : SessionTest(Refusing()) {}
  static FakeDaemon::Script Refusing() {
    FakeDaemon::Script script;
    script.hello_error = cudaErrorInsufficientDriver;
    script.hello_message = "the driver is too old";
    return script;
  }
};
TEST_F(RefusingDaemonTest, ARefusalIsTheErrorOfEveryCall) {
  EXPECT_EQ(Start(), cudaErrorInsufficientDriver);
  EXPECT_EQ(Launch(), cudaErrorInsufficientDriver);
}

class SilentDaemonTest : public SessionTest {
 protected:
  SilentDaemonTest() : SessionTest(Silent()) {
    settings_.connect_timeout = std::chrono::milliseconds(50);
  }
  static FakeDaemon::Script Silent() {
    FakeDaemon::Script script;
    script.answers_hello = false;
    return script;
  }
};
TEST_F(SilentDaemonTest, ADaemonThatNeverAnswersIsGivenUp) {
  EXPECT_EQ(Start(), cudaErrorNoDevice);
}

}  // namespace
}  // namespace torpor::shim
