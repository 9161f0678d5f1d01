#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "client_shim/core/transport/unix_socket.h"
#include "tests/client_shim/core/session/session_fixture.h"

namespace torpor::shim {
namespace {

TEST_F(SessionTest, AnExplicitGrantIsAcknowledgedBeforeAnyCall) {
  ASSERT_EQ(Start(), cudaSuccess);
  daemon_.Await<wire::HelloAck>();
  GrantRequest(*first_);
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
  std::future<cudaError_t> call = CallWithoutLease();
  daemon_.Grant(*second_, /*is_explicit=*/false);
  EXPECT_EQ(call.get(), cudaSuccess);
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
  while (Launch() == cudaSuccess) std::this_thread::yield();
  EXPECT_EQ(Synchronize(), cudaErrorUnknown);
  EXPECT_EQ(Synchronize(), cudaSuccess);
  EXPECT_EQ(CallIds(second_->commands()),
            (std::vector<std::uint32_t>{kAttach, wire::DeviceSynchronize::kCallId}));
}

TEST_F(SessionTest, TheCallsOfALostExplicitLeaseFailUntilTheNextGrant) {
  ASSERT_EQ(Start(), cudaSuccess);
  daemon_.Await<wire::HelloAck>();
  LoseLease({GrantRequest(*first_), cudaErrorUnknown, false, "the executor died"});
  GrantRequest(*second_);
  EXPECT_EQ(Synchronize(), cudaSuccess);
}

TEST_F(SessionTest, ALossThatNobodyWasToldOfIsToldInTheNextLease) {
  ASSERT_EQ(Start(), cudaSuccess);
  daemon_.Await<wire::HelloAck>();
  const std::uint64_t lease = GrantRequest(*first_);
  ASSERT_EQ(Launch(), cudaSuccess);
  daemon_.Send(wire::LeaseLost{lease, cudaErrorUnknown, false, "the executor died"});
  GrantRequest(*second_);
  EXPECT_EQ(Synchronize(), cudaSuccess);
  EXPECT_EQ(session_->TakeAsyncError(), cudaErrorUnknown);
  EXPECT_EQ(session_->TakeAsyncError(), cudaSuccess);
}

TEST_F(SessionTest, ALossThatACallToldOrThatLostNothingIsNotToldAgain) {
  ASSERT_EQ(Start(), cudaSuccess);
  daemon_.Await<wire::HelloAck>();
  const std::uint64_t lease = GrantRequest(*first_);
  ASSERT_EQ(Launch(), cudaSuccess);
  daemon_.Send(wire::LeaseLost{lease, cudaErrorUnknown, false, "the executor died"});
  while (Launch() == cudaSuccess) std::this_thread::yield();
  const std::uint64_t unused = GrantRequest(*second_);
  daemon_.Send(wire::LeaseLost{unused, cudaErrorUnknown, false, "this one too"});
  const auto third = MakeExecutor("third");
  GrantRequest(*third);
  EXPECT_EQ(Synchronize(), cudaSuccess);
  EXPECT_EQ(session_->TakeAsyncError(), cudaSuccess);
}

TEST_F(SessionTest, ALossThatOnlyTheShimsOwnCallsMetIsStillTold) {
  ASSERT_EQ(Start(), cudaSuccess);
  ASSERT_EQ(Launch(), cudaSuccess);
  const std::uint64_t lease = daemon_.Await<wire::LeaseAck>().lease_id;
  daemon_.set_auto_grant(second_.get());
  daemon_.Send(wire::LeaseLost{lease, cudaErrorUnknown, false, "the executor died"});
  EXPECT_FALSE(session_->SetQuiet(true));
  while (Launch() == cudaSuccess) std::this_thread::yield();
  EXPECT_EQ(Synchronize(), cudaErrorUnknown);
  EXPECT_EQ(session_->TakeAsyncError(), cudaSuccess);
  EXPECT_TRUE(session_->SetQuiet(false));
  EXPECT_EQ(Synchronize(), cudaErrorUnknown);
  EXPECT_EQ(Synchronize(), cudaSuccess);
}

TEST_F(SessionTest, ALossThatAnOwnCallWaitedThroughIsStillTold) {
  ASSERT_EQ(Start(), cudaSuccess);
  daemon_.Await<wire::HelloAck>();
  GrantRequest(*first_);
  ASSERT_EQ(Synchronize(), cudaSuccess);
  first_->Pause();
  cudaError_t result = cudaSuccess;
  std::thread caller([&] {
    session_->SetQuiet(true);
    result = Synchronize();
  });
  first_->Await(wire::DeviceSynchronize::kCallId, 2);
  first_->Die();
  caller.join();
  EXPECT_EQ(result, cudaErrorDevicesUnavailable);
  EXPECT_EQ(session_->TakeAsyncError(), cudaErrorDevicesUnavailable);
}

TEST_F(SessionTest, WhatASynchronisationHasAnsweredIsNotLost) {
  ASSERT_EQ(Start(), cudaSuccess);
  daemon_.Await<wire::HelloAck>();
  const std::uint64_t lease = GrantRequest(*first_);
  ASSERT_EQ(Launch(), cudaSuccess);
  ASSERT_EQ(Synchronize(), cudaSuccess);
  daemon_.Send(wire::LeaseLost{lease, cudaErrorUnknown, false, "the executor died"});
  GrantRequest(*second_);
  EXPECT_EQ(Synchronize(), cudaSuccess);
  EXPECT_EQ(session_->TakeAsyncError(), cudaSuccess);
}

TEST_F(SessionTest, AThreadsDefaultStreamEndsWithIt) {
  ASSERT_EQ(Start(), cudaSuccess);
  ASSERT_EQ(Synchronize(), cudaSuccess);
  std::uint64_t stream = 0;
  std::thread([&] { stream = session_->PerThreadStream(); }).join();
  EXPECT_FALSE(session_->IsLive(stream));
  ASSERT_EQ(Synchronize(), cudaSuccess);
  EXPECT_EQ(CallIds(first_->commands()),
            (std::vector<std::uint32_t>{kAttach, wire::DeviceSynchronize::kCallId,
                                        wire::StreamCreate::kCallId, wire::StreamDestroy::kCallId,
                                        wire::DeviceSynchronize::kCallId}));
}

TEST_F(SessionTest, AnExecutorThatDiesFailsTheCallThatWaits) {
  ASSERT_EQ(Start(), cudaSuccess);
  ASSERT_EQ(Synchronize(), cudaSuccess);
  first_->Pause();
  cudaError_t result = cudaSuccess;
  std::thread caller([&] { result = Synchronize(); });
  first_->Await(wire::DeviceSynchronize::kCallId, 2);
  first_->Die();
  caller.join();
  EXPECT_EQ(result, cudaErrorDevicesUnavailable);
}

TEST_F(SessionTest, AStickyLossIsForEver) {
  ASSERT_EQ(Start(), cudaSuccess);
  ASSERT_EQ(Synchronize(), cudaSuccess);
  const std::uint64_t lease = daemon_.Await<wire::LeaseAck>().lease_id;
  LoseLease({lease, cudaErrorIllegalAddress, true, "a kernel went astray"});
}

TEST_F(SessionTest, AnExecutorThatCannotBeReachedGivesTheLeaseBack) {
  ASSERT_EQ(Start(), cudaSuccess);
  daemon_.Await<wire::HelloAck>();
  const auto gone = MakeExecutor("gone");
  gone->Die();
  const std::uint64_t lease = daemon_.Grant(*gone, /*is_explicit=*/true);
  EXPECT_EQ(daemon_.Await<wire::LeaseReturned>().lease_id, lease);
  EXPECT_EQ(Synchronize(), cudaErrorDevicesUnavailable);
  GrantRequest(*first_);
  EXPECT_EQ(Synchronize(), cudaSuccess);
}

TEST_F(SessionTest, CallsGoOnWhileAnExecutorIsConnectedTo) {
  ASSERT_EQ(Start(), cudaSuccess);
  daemon_.Await<wire::HelloAck>();
  const std::string path = daemon_.folder() + "/busy.sock";
  const UniqueFd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(listen(listener.get(), 0), 0);
  std::vector<UniqueFd> waiting;  // they fill the listener's queue
  const auto now = std::chrono::steady_clock::now();
  while (Result<UniqueFd, int> client = ConnectUnix(path, SOCK_STREAM, now))
    waiting.push_back(std::move(client).value());
  wire::LeaseGrant grant;
  grant.lease_id = 7;
  grant.is_explicit = true;
  grant.executor_socket = path;
  daemon_.Send(grant);
  // One that waited for the connection would return when it has been given up.
  const auto enough = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
  while (std::chrono::steady_clock::now() < enough) {
    session_->IsLive(1);
    std::this_thread::yield();
  }
  const UniqueFd accepted(accept(listener.get(), nullptr, nullptr));
  EXPECT_EQ(daemon_.Await<wire::LeaseAck>().lease_id, 7u);
}

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

TEST_F(SessionTest, RevokesCannotDisturbManyThreads) {
  ASSERT_EQ(Start(), cudaSuccess);
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  threads.reserve(4);
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

TEST_F(SessionTest, AnExecutorThatEndsHasTheLastWord) {
  settings_.log = LogLevel::kWarn;
  ASSERT_EQ(Start(), cudaSuccess);
  const std::uint64_t lease = GrantRequest(*first_);
  ASSERT_EQ(Synchronize(), cudaSuccess);
  first_->set_answer([this](const ReceivedCommand& command) {
    wire::Reply reply;
    if (command.call_id != wire::DeviceSynchronize::kCallId) return reply;
    wire::Reply output;
    output.call_id = static_cast<std::uint32_t>(wire::ProtocolCall::kOutput);
    output.message = "Assertion `false` failed.";
    std::vector<std::uint8_t> bytes;
    wire::Writer{bytes}(output);
    first_->SendRaw({bytes.begin(), bytes.end()});
    reply.status = cudaErrorAssert;
    return reply;
  });
  first_->Pause();
  ::testing::internal::CaptureStderr();
  auto call = std::async(std::launch::async, [this] { return Synchronize(); });
  first_->Await(wire::DeviceSynchronize::kCallId, 2);
  daemon_.Send(wire::LeaseLost{lease, cudaErrorAssert, true, "the context is lost"});
  while (session_->Start() == cudaSuccess) std::this_thread::yield();
  first_->Resume();
  EXPECT_EQ(call.get(), cudaErrorAssert);
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("Assertion `false` failed.\n"), std::string::npos) << said;
}

}  // namespace
}  // namespace torpor::shim
