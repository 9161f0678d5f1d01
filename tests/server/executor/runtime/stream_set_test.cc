#include "server/executor/runtime/stream_set.h"

#include <driver_types.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/server/executor/gpu/fake_cuda.h"

namespace torpor::executor {
namespace {

using ::testing::ElementsAre;

class StreamSetTest : public testing::Test {
 protected:
  void SetUp() override {
    device_ = *Device::Open(cuda_.driver(), 0);
    cuda_.HoldStreams();
    streams_ = std::make_unique<StreamSet>(*device_);
  }

  // Work that appends `value` to the fake's launches when it runs.
  void Launch(std::uint64_t stream, std::uint64_t value) {
    CUstream handle = nullptr;
    ASSERT_EQ(streams_->Use(stream, handle), CUDA_SUCCESS);
    void* parameters[] = {&value};
    cuda_.driver().LaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, handle, parameters, nullptr);
  }
  std::size_t PositionOf(std::uint64_t value) const {
    const auto& launches = cuda_.launches();
    return static_cast<std::size_t>(std::find(launches.begin(), launches.end(), value) -
                                    launches.begin());
  }

  FakeCuda cuda_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<StreamSet> streams_;
};

TEST_F(StreamSetTest, LegacyWorkWaitsForBlockingStreamsAndTheyForIt) {
  ASSERT_EQ(streams_->Create(10, cudaStreamDefault, 0), CUDA_SUCCESS);
  ASSERT_EQ(streams_->Create(11, cudaStreamDefault, 0), CUDA_SUCCESS);
  Launch(10, 1);
  Launch(0, 2);
  Launch(11, 3);
  Launch(0, 4);
  Launch(10, 5);
  cuda_.Release();
  EXPECT_THAT(cuda_.launches(), ElementsAre(1, 2, 3, 4, 5));
}

TEST_F(StreamSetTest, NonBlockingStreamsTakeNoPart) {
  ASSERT_EQ(streams_->Create(10, cudaStreamDefault, 0), CUDA_SUCCESS);
  ASSERT_EQ(streams_->Create(11, cudaStreamNonBlocking, 0), CUDA_SUCCESS);
  Launch(0, 1);
  Launch(11, 2);
  cuda_.Release();
  // The fake runs the youngest stream first where nothing holds it back.
  EXPECT_EQ(cuda_.events_recorded(), 0u);
  EXPECT_EQ(cuda_.launches().size(), 2u);
}

TEST_F(StreamSetTest, BlockingStreamsDoNotWaitForEachOther) {
  ASSERT_EQ(streams_->Create(10, cudaStreamDefault, 0), CUDA_SUCCESS);
  ASSERT_EQ(streams_->Create(11, cudaStreamDefault, 0), CUDA_SUCCESS);
  Launch(10, 1);
  Launch(11, 2);
  cuda_.Release();
  EXPECT_LT(PositionOf(2), PositionOf(1)) << "the youngest goes first";
}

TEST_F(StreamSetTest, OneStreamAloneCostsNoEvents) {
  for (std::uint64_t i = 0; i < 100; ++i) Launch(0, i);
  EXPECT_EQ(cuda_.events_recorded(), 0u);
  ASSERT_EQ(streams_->Create(10, cudaStreamDefault, 0), CUDA_SUCCESS);
  Launch(10, 100);
  const std::size_t joined = cuda_.events_recorded();
  for (std::uint64_t i = 101; i < 200; ++i) Launch(10, i);
  EXPECT_EQ(cuda_.events_recorded(), joined);
}

TEST_F(StreamSetTest, WorkOfADestroyedStreamIsWaitedFor) {
  ASSERT_EQ(streams_->Create(10, cudaStreamDefault, 0), CUDA_SUCCESS);
  Launch(0, 1);
  Launch(10, 2);
  ASSERT_EQ(streams_->Destroy(10), CUDA_SUCCESS);
  Launch(0, 3);
  EXPECT_EQ(streams_->SynchronizeUntil(TimePoint{}), CUDA_ERROR_TIMEOUT);
  EXPECT_EQ(streams_->Synchronize(), CUDA_SUCCESS);
  EXPECT_LT(PositionOf(2), PositionOf(3));
  EXPECT_EQ(streams_->SynchronizeUntil(TimePoint{}), CUDA_SUCCESS);
}

// PyTorch makes 32 streams a priority and uses few.
TEST_F(StreamSetTest, OnlyStreamsWithWorkAreAskedAbout) {
  static int asked = 0;
  static CudaDriver fake;
  fake = cuda_.driver();
  CudaDriver counting = fake;
  counting.StreamSynchronize = [](CUstream stream) {
    return ++asked, fake.StreamSynchronize(stream);
  };
  counting.StreamQuery = [](CUstream stream) { return ++asked, fake.StreamQuery(stream); };
  const std::unique_ptr<Device> device = *Device::Open(counting, 0);
  StreamSet streams(*device);
  for (std::uint64_t id = 10; id < 74; ++id) ASSERT_EQ(streams.Create(id, 0, 0), CUDA_SUCCESS);
  CUstream handle = nullptr;
  ASSERT_EQ(streams.Use(20, handle), CUDA_SUCCESS);
  ASSERT_EQ(streams.Use(30, handle), CUDA_SUCCESS);
  EXPECT_EQ(streams.SynchronizeUntil(TimePoint::max()), CUDA_SUCCESS);
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(streams.Synchronize(), CUDA_SUCCESS);
  EXPECT_LE(asked, 2 + 2 * 2);
  asked = 0;
  EXPECT_EQ(streams.SynchronizeUntil(TimePoint::max()), CUDA_SUCCESS);
  EXPECT_EQ(streams.Synchronize(), CUDA_SUCCESS);
  EXPECT_EQ(asked, 0) << "a lease that ends after the client's own drain";
}

TEST_F(StreamSetTest, UnknownAndTakenIdsAreRefused) {
  CUstream handle = nullptr;
  EXPECT_EQ(streams_->Use(10, handle), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(streams_->Destroy(10), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(streams_->Create(0, 0, 0), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(streams_->Create(10, 0, 0), CUDA_SUCCESS);
  EXPECT_EQ(streams_->Create(10, 0, 0), CUDA_ERROR_INVALID_HANDLE);
}

}  // namespace
}  // namespace torpor::executor
