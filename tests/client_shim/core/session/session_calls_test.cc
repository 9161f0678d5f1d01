#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "client_shim/core/commands/batch_rhythm.h"
#include "tests/client_shim/core/session/session_fixture.h"

namespace torpor::shim {
namespace {

TEST_F(SessionTest, ACallGetsALeaseAndAReply) {
  ASSERT_EQ(Start(), cudaSuccess);
  EXPECT_EQ(Launch(), cudaSuccess);
  EXPECT_EQ(Synchronize(), cudaSuccess);
  EXPECT_EQ(CallIds(first_->commands()),
            (std::vector<std::uint32_t>{kAttach, wire::LaunchKernel::kCallId,
                                        wire::DeviceSynchronize::kCallId}));
  EXPECT_EQ(daemon_.Await<wire::LeaseAck>().lease_id, 1u);
}

TEST_F(SessionTest, WhatKernelsPrintComesOutWithTheReply) {
  settings_.log = LogLevel::kWarn;
  ASSERT_EQ(Start(), cudaSuccess);
  first_->set_answer([this](const ReceivedCommand& command) {
    if (command.call_id != wire::DeviceSynchronize::kCallId) return wire::Reply{};
    wire::Reply output;
    output.call_id = static_cast<std::uint32_t>(wire::ProtocolCall::kOutput);
    output.result = {'h', 'i', '\n'};
    output.message = "first\nsecond";
    std::vector<std::uint8_t> bytes;
    wire::Writer{bytes}(output);
    first_->SendRaw({bytes.begin(), bytes.end()});
    return wire::Reply{};
  });
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(Synchronize(), cudaSuccess);
  std::fflush(stdout);
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "hi\n");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "torpor: first\ntorpor: second\n");
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

TEST_F(SessionTest, ABatchOfAsManyCallsAsItMayHaveLeavesByItself) {
  settings_.flush_after = std::chrono::hours(1);
  settings_.batch_calls = 4;
  ASSERT_EQ(Start(), cudaSuccess);
  for (int i = 0; i < 11; ++i) ASSERT_EQ(Launch(), cudaSuccess);
  first_->Await(wire::LaunchKernel::kCallId, 8);
  EXPECT_EQ(first_->frames(), 3u);  // kAttach travels alone
  ASSERT_EQ(Synchronize(), cudaSuccess);
  EXPECT_EQ(first_->commands().size(), 1 + 11 + 1u);
}

TEST_F(SessionTest, EachCallIsWaitedForIfLaunchesBlock) {
  settings_.is_blocking = true;
  ASSERT_EQ(Start(), cudaSuccess);
  ASSERT_EQ(Launch(), cudaSuccess);
  ASSERT_EQ(Launch(), cudaSuccess);
  EXPECT_EQ(CallIds(first_->commands()),
            (std::vector<std::uint32_t>{
                kAttach, wire::LaunchKernel::kCallId, wire::DeviceSynchronize::kCallId,
                wire::LaunchKernel::kCallId, wire::DeviceSynchronize::kCallId}));
  EXPECT_EQ(first_->frames(), 1 + 2u);  // kAttach travels alone
}

TEST_F(SessionTest, ALaunchThatBlocksReturnsItsOwnError) {
  settings_.is_blocking = true;
  first_->set_answer([](const ReceivedCommand&) {
    wire::Reply reply;
    reply.async_error = cudaErrorInvalidValue;
    return reply;
  });
  ASSERT_EQ(Start(), cudaSuccess);
  EXPECT_EQ(Launch(), cudaErrorInvalidValue);
  EXPECT_EQ(session_->TakeAsyncError(), cudaSuccess);
}

TEST_F(SessionTest, CommandsOfOneBatchTravelInOneFrame) {
  settings_.flush_after = std::chrono::hours(1);
  settings_.batch_calls = 1000;
  ASSERT_EQ(Start(), cudaSuccess);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(Launch(), cudaSuccess);
  ASSERT_EQ(Synchronize(), cudaSuccess);
  EXPECT_EQ(first_->frames(), 2u);  // kAttach travels alone
}

TEST_F(SessionTest, WithoutANumberOfCallsBatchesLeaveAsTheSessionLearns) {
  settings_.flush_after = std::chrono::hours(1);
  ASSERT_EQ(settings_.batch_calls, 0u);
  ASSERT_EQ(Start(), cudaSuccess);
  for (std::size_t i = 0; i < BatchRhythm::kFirstCalls; ++i) ASSERT_EQ(Launch(), cudaSuccess);
  first_->Await(wire::LaunchKernel::kCallId, BatchRhythm::kFirstCalls);
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

TEST_F(SessionTest, ManyThreadsShareTheSession) {
  ASSERT_EQ(Start(), cudaSuccess);
  std::vector<std::thread> threads;
  threads.reserve(8);
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
  EXPECT_EQ(Synchronize(), cudaSuccess);
  // Each thread's stream was also destroyed.
  EXPECT_EQ(first_->commands().size(), 1u + 8 + 4000 + 400 + 8 + 1);
}

TEST_F(SessionTest, AnInvalidReplyEndsTheLease) {
  ASSERT_EQ(Start(), cudaSuccess);
  ASSERT_EQ(Synchronize(), cudaSuccess);
  daemon_.set_auto_grant(second_.get());
  first_->SendRaw("nonsense");
  EXPECT_EQ(Synchronize(), cudaErrorDevicesUnavailable);
}

}  // namespace
}  // namespace torpor::shim
