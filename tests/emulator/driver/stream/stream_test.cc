#include "emulator/driver/stream/stream.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

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

}  // namespace
}  // namespace torpor::emulator
