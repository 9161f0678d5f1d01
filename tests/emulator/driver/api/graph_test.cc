// Captured streams, and graphs of what was captured.
#include <numeric>
#include <vector>

#include "tests/emulator/driver/api/module_test.h"

namespace torpor::emulator {
namespace {

class GraphTest : public ModuleTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    Load(ReadFile(TORPOR_TEST_FATBIN));
    ASSERT_CUDA(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
    ASSERT_CUDA(cuStreamCreate(&side_, CU_STREAM_NON_BLOCKING));
    x_ = Upload(std::vector<int>{1, 2, 3, 4});
    y_ = Upload(std::vector<int>{0, 0, 0, 0});
  }
  void TearDown() override {
    cuStreamDestroy(stream_);
    cuStreamDestroy(side_);
    ModuleTest::TearDown();
  }

  CUresult Reverse(CUstream stream) {
    void* values[] = {&x_};
    return cuLaunchKernel(Find("reverse"), 1, 1, 1, 4, 1, 1, 16, stream, values, nullptr);
  }
  CUresult Begin() { return cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_RELAXED); }
  // Ends the capture and makes an instance of what was captured.
  CUgraphExec Instance() {
    CUgraph graph = nullptr;
    EXPECT_CUDA(cuStreamEndCapture(stream_, &graph));
    CUgraphExec exec = nullptr;
    EXPECT_CUDA(cuGraphInstantiate(&exec, graph, 0));
    EXPECT_CUDA(cuGraphDestroy(graph));
    return exec;
  }
  void Launch(CUgraphExec exec) {
    ASSERT_CUDA(cuGraphLaunch(exec, stream_));
    ASSERT_CUDA(cuStreamSynchronize(stream_));
  }

  CUstream stream_ = nullptr;
  CUstream side_ = nullptr;
  CUdeviceptr x_ = 0;
  CUdeviceptr y_ = 0;
};

TEST_F(GraphTest, CapturedWorkRunsAtEachLaunch) {
  ASSERT_CUDA(Begin());
  ASSERT_CUDA(Reverse(stream_));
  ASSERT_CUDA(cuMemcpyDtoDAsync(y_, x_, 16, stream_));
  ASSERT_CUDA(cuMemsetD32Async(x_, 9, 1, stream_));
  CUgraphExec exec = Instance();
  EXPECT_EQ(Download<int>(x_, 4), (std::vector<int>{1, 2, 3, 4})) << "nothing has run";
  Launch(exec);
  EXPECT_EQ(Download<int>(y_, 4), (std::vector<int>{4, 3, 2, 1}));
  EXPECT_EQ(Download<int>(x_, 4), (std::vector<int>{9, 3, 2, 1}));
  Launch(exec);
  EXPECT_EQ(Download<int>(y_, 4), (std::vector<int>{1, 2, 3, 9}));
  ASSERT_CUDA(cuGraphExecDestroy(exec));
  EXPECT_EQ(cuGraphLaunch(exec, stream_), CUDA_ERROR_INVALID_VALUE);
  // The stream is as before.
  ASSERT_CUDA(Reverse(stream_));
  ASSERT_CUDA(cuStreamSynchronize(stream_));
  EXPECT_EQ(Download<int>(x_, 4), (std::vector<int>{9, 3, 2, 9}));
}

TEST_F(GraphTest, AStreamThatWaitsForCapturedWorkJoins) {
  CUevent event = nullptr;
  ASSERT_CUDA(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  ASSERT_CUDA(Begin());
  ASSERT_CUDA(Reverse(stream_));
  ASSERT_CUDA(cuEventRecord(event, stream_));
  ASSERT_CUDA(cuStreamWaitEvent(side_, event, 0));
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  ASSERT_CUDA(cuStreamIsCapturing(side_, &status));
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
  ASSERT_CUDA(cuMemcpyDtoDAsync(y_, x_, 16, side_));
  ASSERT_CUDA(cuEventRecord(event, side_));
  ASSERT_CUDA(cuStreamWaitEvent(stream_, event, 0));
  CUgraphExec exec = Instance();
  ASSERT_CUDA(cuStreamIsCapturing(side_, &status));
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_NONE);
  Launch(exec);
  EXPECT_EQ(Download<int>(y_, 4), (std::vector<int>{4, 3, 2, 1}));
  EXPECT_EQ(cuStreamWaitEvent(side_, event, 0), CUDA_ERROR_CAPTURED_EVENT);
  ASSERT_CUDA(cuEventRecord(event, stream_));
  ASSERT_CUDA(cuStreamWaitEvent(side_, event, 0));
  ASSERT_CUDA(cuGraphExecDestroy(exec));
}

TEST_F(GraphTest, AnInstanceTakesTheWorkOfAnotherGraph) {
  ASSERT_CUDA(Begin());
  ASSERT_CUDA(Reverse(stream_));
  CUgraphExec exec = Instance();
  ASSERT_CUDA(Begin());
  ASSERT_CUDA(cuMemsetD32Async(x_, 5, 4, stream_));
  CUgraph other = nullptr;
  ASSERT_CUDA(cuStreamEndCapture(stream_, &other));
  CUgraphExecUpdateResultInfo info{};
  ASSERT_CUDA(cuGraphExecUpdate(exec, other, &info));
  EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
  ASSERT_CUDA(cuGraphDestroy(other));
  Launch(exec);
  EXPECT_EQ(Download<int>(x_, 4), (std::vector<int>{5, 5, 5, 5}));
  ASSERT_CUDA(cuGraphExecDestroy(exec));
}

TEST_F(GraphTest, WhatBreaksACapture) {
  EXPECT_EQ(cuStreamBeginCapture(nullptr, CU_STREAM_CAPTURE_MODE_RELAXED),
            CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CUgraph graph = nullptr;
  EXPECT_EQ(cuStreamEndCapture(stream_, &graph), CUDA_ERROR_ILLEGAL_STATE);
  ASSERT_CUDA(Begin());
  EXPECT_EQ(cuStreamSynchronize(stream_), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(cuStreamEndCapture(stream_, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(graph, nullptr);
  CUevent outside = nullptr;
  ASSERT_CUDA(cuEventCreate(&outside, CU_EVENT_DISABLE_TIMING));
  ASSERT_CUDA(cuEventRecord(outside, side_));
  ASSERT_CUDA(Begin());
  EXPECT_EQ(cuStreamWaitEvent(stream_, outside, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  EXPECT_EQ(cuStreamEndCapture(stream_, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  ASSERT_CUDA(Begin());
  ASSERT_CUDA(cuEventRecord(outside, stream_));
  EXPECT_EQ(cuEventQuery(outside), CUDA_ERROR_CAPTURED_EVENT);
  EXPECT_EQ(cuStreamEndCapture(stream_, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  ASSERT_CUDA(Begin());
  CUgraphExec exec = Instance();
  ASSERT_CUDA(Begin());
  EXPECT_EQ(cuGraphLaunch(exec, stream_), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(cuStreamEndCapture(stream_, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  ASSERT_CUDA(cuGraphExecDestroy(exec));
  ASSERT_CUDA(cuStreamSynchronize(stream_));
}

}  // namespace
}  // namespace torpor::emulator
