#include "server/executor/runtime/stream_calls.h"

#include <driver_types.h>

#include "tests/server/executor/runtime/runtime_fixture.h"

namespace torpor::executor {
namespace {

class StreamCallsTest : public RuntimeTest {
 protected:
  std::uint64_t Slot(std::uint32_t slot) { return s_.memory->window().Slot(slot)->load(); }

  EventSet events_{*s_.device};
  StreamCalls calls_{*s_.device, streams_, events_, marks_};
};

TEST_F(StreamCallsTest, AStreamIsTheSessionsFromItsCreationToItsEnd) {
  wire::StreamSynchronizeResult result;
  EXPECT_EQ(calls_.StreamSynchronize({10}, result).code, cudaErrorInvalidResourceHandle);
  EXPECT_TRUE(calls_.StreamCreate({10, cudaStreamNonBlocking, 0}).ok());
  EXPECT_TRUE(calls_.StreamSynchronize({10}, result).ok());
  EXPECT_TRUE(calls_.StreamDestroy({10}).ok());
  EXPECT_EQ(calls_.StreamDestroy({10}).code, cudaErrorInvalidResourceHandle);
}

TEST_F(StreamCallsTest, AStreamWaitsForAnEventOfAnother) {
  ASSERT_TRUE(calls_.StreamCreate({10, cudaStreamNonBlocking, 0}).ok());
  ASSERT_TRUE(calls_.StreamCreate({11, cudaStreamNonBlocking, 0}).ok());
  ASSERT_EQ(events_.Create(5, 0), CUDA_SUCCESS);
  s_.cuda.HoldStreams();
  CUstream first = nullptr;
  ASSERT_EQ(streams_.Use(10, first), CUDA_SUCCESS);
  ASSERT_TRUE(calls_.StreamMark({10, 1, 7}).ok());
  ASSERT_EQ(events_.Record(5, first), CUDA_SUCCESS);
  ASSERT_TRUE(calls_.StreamWaitEvent({11, 5, 0}).ok());
  ASSERT_TRUE(calls_.StreamMark({11, 2, 8}).ok());
  EXPECT_EQ(Slot(2), 0u);
  s_.cuda.Release();
  EXPECT_EQ(Slot(1), 7u);
  EXPECT_EQ(Slot(2), 8u);
  EXPECT_EQ(calls_.StreamWaitEvent({11, 99, 0}).code, cudaErrorInvalidResourceHandle);
}

TEST_F(StreamCallsTest, WaitingCallsSayHowTheDriverFailed) {
  ASSERT_TRUE(calls_.StreamCreate({10, cudaStreamNonBlocking, 0}).ok());
  ASSERT_TRUE(calls_.StreamMark({10, 1, 7}).ok());
  s_.cuda.Break(CUDA_ERROR_ILLEGAL_ADDRESS);
  wire::DeviceSynchronizeResult nothing;
  EXPECT_EQ(calls_.DeviceSynchronize({}, nothing).code, cudaErrorIllegalAddress);
  EXPECT_EQ(calls_.StreamFence({10}).code, cudaErrorIllegalAddress);
  s_.cuda.Break(CUDA_SUCCESS);
}

}  // namespace
}  // namespace torpor::executor
