#include "emulator/driver/stream/stream.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

namespace torpor::emulator {
namespace {

TEST(StreamTest, StreamsOfOneIssueQueueBeginInTheOrderOfSubmission) {
  const auto queue = std::make_shared<IssueQueue>();
  const auto first = std::make_shared<Stream>(0, 0, 1, queue);
  const auto second = std::make_shared<Stream>(0, 0, 2, queue);
  const auto apart = std::make_shared<Stream>(0, 0, 3);
  std::promise<void> gate;
  std::atomic<bool> ran = false;
  first->Submit([&] { gate.get_future().wait(); }, {}, Stream::Placement::kWait);
  second->Submit([&] { ran = true; }, {}, Stream::Placement::kInlineIfIdle);
  EXPECT_FALSE(second->Idle());
  apart->Submit([] {}, {}, Stream::Placement::kQueue);
  apart->WaitIdle();
  EXPECT_FALSE(ran);
  gate.set_value();
  second->WaitIdle();
  EXPECT_TRUE(ran);
  for (const auto& stream : {first, second, apart}) stream->Close();
}

TEST(StreamTest, WorkThatRunsLetsTheNextStreamBegin) {
  const auto queue = std::make_shared<IssueQueue>();
  const auto first = std::make_shared<Stream>(0, 0, 1, queue);
  const auto second = std::make_shared<Stream>(0, 0, 2, queue);
  std::promise<void> gate;
  first->Submit([&] { gate.get_future().wait(); }, {}, Stream::Placement::kQueue);
  second->Submit([] {}, {}, Stream::Placement::kQueue);
  second->WaitIdle();
  EXPECT_FALSE(first->Idle());
  gate.set_value();
  first->WaitIdle();
  for (const auto& stream : {first, second}) stream->Close();
}

TEST(StreamTest, AFullStreamHoldsUpWhoWantsRoom) {
  const auto stream = std::make_shared<Stream>(0, 0, 1);
  std::promise<void> gate;
  stream->Submit([&] { gate.get_future().wait(); }, {}, Stream::Placement::kQueue);
  stream->Submit([] {}, {}, Stream::Placement::kQueue);
  stream->WaitForRoom(3);  // two are less than three
  const auto room = std::async(std::launch::async, [&] { stream->WaitForRoom(2); });
  gate.set_value();
  room.wait();
  EXPECT_TRUE(stream->Finished(1));
  stream->Close();
}

TEST(StreamTest, WorkForAnyThreadRunsInOrderOneAtATime) {
  constexpr int kRounds = 2000;
  const auto stream = std::make_shared<Stream>(0, 0, 1);
  std::atomic<bool> is_running = false;
  int done = 0;  // of the work, whose order guards it
  const auto work = [&](int number) {
    return [&, number] {
      EXPECT_FALSE(is_running.exchange(true));
      EXPECT_EQ(done++, number);
      is_running = false;
    };
  };
  const auto waiter = std::async(std::launch::async, [&] {
    for (std::uint64_t i = 1; i < kRounds; i += 3) stream->Wait(i);
  });
  for (int i = 0; i < kRounds; ++i) {
    const auto placement =
        i % 5 == 0 ? Stream::Placement::kQueue : Stream::Placement::kForAnyThread;
    stream->Submit(work(i), {}, placement);
    if (i % 7 == 0) stream->WaitIdle();
  }
  stream->WaitIdle();
  waiter.wait();
  EXPECT_EQ(done, kRounds);
  stream->Close();
}

TEST(StreamTest, AWaiterLeavesWorkThatWaitsForOthersToTheStreamsThread) {
  const auto other = std::make_shared<Stream>(0, 0, 1);
  const auto stream = std::make_shared<Stream>(0, 0, 2);
  std::promise<void> gate;
  const std::uint64_t first =
      other->Submit([&] { gate.get_future().wait(); }, {}, Stream::Placement::kQueue);
  std::thread::id ran_on;
  const std::uint64_t second = stream->Submit([&] { ran_on = std::this_thread::get_id(); },
                                              {{other, first}}, Stream::Placement::kForAnyThread);
  const auto opener = std::async(std::launch::async, [&] { gate.set_value(); });
  stream->Wait(second);
  EXPECT_NE(ran_on, std::this_thread::get_id());
  for (const auto& each : {other, stream}) each->Close();
}

}  // namespace
}  // namespace torpor::emulator
