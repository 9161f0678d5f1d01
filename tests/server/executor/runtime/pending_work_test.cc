#include "server/executor/runtime/pending_work.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <vector>

#include "tests/server/executor/gpu/fake_cuda.h"

namespace torpor::executor {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

// Streams are held until Release. Work of the fake's is a write to `word_`.
class PendingWorkTest : public testing::Test {
 protected:
  PendingWorkTest() : device_(*Device::Open(cuda_.driver(), 0)) {
    cuda_.HoldStreams();
    stream_ = *device_->CreateStream();
    other_ = *device_->CreateStream();
  }

  void Enqueue(PendingWork& work, CUstream stream, int times = 1) {
    for (int i = 0; i < times; ++i) {
      work.Note(stream);
      device_->driver().StreamWriteValue64(stream, reinterpret_cast<CUdeviceptr>(&word_), 1, 0);
    }
  }
  // Enqueues as much as there is room for.
  std::size_t Fill(PendingWork& work, CUstream stream) {
    std::size_t count = 0;
    for (; count < 10'000 && work.HasRoom(); ++count) Enqueue(work, stream);
    return count;
  }

  FakeCuda cuda_;
  std::unique_ptr<Device> device_;
  CUstream stream_ = nullptr;
  CUstream other_ = nullptr;
  std::uint64_t word_ = 0;
};

TEST_F(PendingWorkTest, LittleWorkCostsNoEvents) {
  PendingWork work(*device_);
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(work.HasRoom());
    Enqueue(work, stream_);
  }
  EXPECT_EQ(cuda_.events_recorded(), 0U);
}

// Real drivers wait at about 1024 pieces, marks included.
TEST_F(PendingWorkTest, RoomEndsBelowTheDepthOfDriversQueues) {
  PendingWork work(*device_);
  const std::size_t filled = Fill(work, stream_);
  EXPECT_GT(filled, 800U);
  EXPECT_LE(filled + cuda_.events_recorded(), 1000U);
  EXPECT_FALSE(work.HasRoom());
  cuda_.Release();
  EXPECT_TRUE(work.HasRoom());
  EXPECT_EQ(work.pieces(), 0U);
}

TEST_F(PendingWorkTest, ThereIsRoomAgainWhenHalfIsDone) {
  PendingWork work(*device_);
  Fill(work, stream_);
  ASSERT_FALSE(work.HasRoom());
  // The first two marks stand behind more than half of the work.
  cuda_.ReleaseUpTo(stream_, 2);
  EXPECT_TRUE(work.HasRoom());
  EXPECT_GT(work.pieces(), 300U);
}

TEST_F(PendingWorkTest, WorkOfManyStreamsCountsTogether) {
  PendingWork work(*device_);
  std::vector<CUstream> streams(32);
  for (CUstream& stream : streams) stream = *device_->CreateStream();
  std::size_t count = 0;
  while (count < 10'000 && work.HasRoom()) Enqueue(work, streams[count++ % streams.size()]);
  EXPECT_LE(count, 1000U);
  // Each stream has too little work for a mark of its own, and yet is not forgotten.
  cuda_.Release();
  EXPECT_TRUE(work.HasRoom());
  EXPECT_EQ(work.pieces(), 0U);
}

TEST_F(PendingWorkTest, SessionsShareTheRoomAndNoneWaitsForTheOther) {
  PendingWork first(*device_);
  PendingWork second(*device_);
  Enqueue(second, other_);
  const std::size_t filled = Fill(first, stream_);
  EXPECT_LT(filled, 500U) << "half of the room";
  EXPECT_GT(Fill(second, other_), 300U);
  second.Clear();
  cuda_.ReleaseUpTo(stream_, 1);
  EXPECT_GT(Fill(first, stream_), 500U) << "all of the room";
}

TEST_F(PendingWorkTest, ManySessionsHaveALittleRoomEach) {
  std::vector<std::unique_ptr<PendingWork>> sessions;
  for (int i = 0; i < 100; ++i) {
    sessions.push_back(std::make_unique<PendingWork>(*device_));
    Enqueue(*sessions.back(), stream_);
  }
  EXPECT_GT(Fill(*sessions[0], stream_), 32U);
}

TEST_F(PendingWorkTest, StreamsAreThoseWithWorkSinceTheLastClear) {
  PendingWork work(*device_);
  EXPECT_THAT(work.Streams(), IsEmpty());
  Enqueue(work, stream_, 2);
  Enqueue(work, other_);
  Enqueue(work, stream_);
  EXPECT_THAT(work.Streams(), UnorderedElementsAre(stream_, other_));
  work.Move(stream_, other_);
  EXPECT_THAT(work.Streams(), ElementsAre(other_));
  EXPECT_EQ(work.pieces(), 4U);
  work.Clear();
  EXPECT_THAT(work.Streams(), IsEmpty());
  EXPECT_EQ(work.pieces(), 0U);
}

TEST_F(PendingWorkTest, NobodyWaitsOnceTheLeaseHasEnded) {
  std::atomic<std::uint64_t> lease = 5;
  PendingWork work(*device_, &lease);
  work.SetLease({5});
  Fill(work, stream_);
  lease = 0;
  EXPECT_FALSE(work.AwaitRoom());
  cuda_.Release();
  EXPECT_TRUE(work.AwaitRoom());
}

TEST_F(PendingWorkTest, ALostContextEndsTheWait) {
  PendingWork work(*device_);
  Fill(work, stream_);
  ASSERT_FALSE(work.HasRoom());
  cuda_.Break(CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_TRUE(work.AwaitRoom());
}

}  // namespace
}  // namespace torpor::executor
