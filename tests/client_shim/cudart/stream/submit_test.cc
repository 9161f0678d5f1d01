// The seam between calls and captures, with work that only counts.
#include "client_shim/cudart/stream/submit.h"

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "tests/client_shim/surface/fake_client_core.h"

namespace torpor::shim {
namespace {

struct Calls {
  int sent = 0;
  int made = 0;
  int captured = 0;
};

struct CountingWork {
  Calls& calls;
  cudaError_t made = cudaSuccess;

  cudaError_t MakeNode(NodeWork& node) const {
    ++calls.made;
    node = HostWork{};
    return made;
  }
  cudaError_t Send(cudaStream_t) const {
    ++calls.sent;
    return cudaSuccess;
  }
};

struct WorkWithoutNode {
  Calls& calls;

  cudaError_t CaptureOn(cudaStream_t) const {
    ++calls.captured;
    return cudaSuccess;
  }
  cudaError_t Send(cudaStream_t) const {
    ++calls.sent;
    return cudaSuccess;
  }
};

class SubmitTest : public testing::Test {
 protected:
  void SetUp() override {
    FakeClientCore::Get().Forget();
    ASSERT_EQ(cudaStreamCreate(&stream_), cudaSuccess);
    ASSERT_EQ(cudaStreamCreate(&other_), cudaSuccess);
  }
  void TearDown() override {
    EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(other_), cudaSuccess);
  }

  void BeginCapture() const {
    ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed), cudaSuccess);
  }
  // The number of nodes of the graph that was captured.
  std::size_t EndCapture() const {
    cudaGraph_t graph = nullptr;
    std::size_t nodes = 0;
    EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
    EXPECT_EQ(cudaGraphGetNodes(graph, nullptr, &nodes), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    return nodes;
  }

  cudaStream_t stream_ = nullptr;
  cudaStream_t other_ = nullptr;
  Calls calls_;
};

TEST_F(SubmitTest, WithoutACaptureWorkIsOnlySent) {
  EXPECT_EQ(Submit(stream_, CountingWork{calls_}), cudaSuccess);
  EXPECT_EQ(Submit(stream_, WorkWithoutNode{calls_}), cudaSuccess);
  EXPECT_EQ(calls_.sent, 2);
  EXPECT_EQ(calls_.made, 0);
  EXPECT_EQ(calls_.captured, 0);
}

TEST_F(SubmitTest, AStreamThatDoesNotExistIsLeftToTheWork) {
  BeginCapture();
  EXPECT_EQ(Submit(reinterpret_cast<cudaStream_t>(0xbad), CountingWork{calls_}), cudaSuccess);
  EXPECT_EQ(calls_.sent, 1);
  EXPECT_EQ(EndCapture(), 0U);
}

TEST_F(SubmitTest, ACapturingStreamTakesTheNodeAndSendsNothing) {
  BeginCapture();
  EXPECT_EQ(Submit(stream_, CountingWork{calls_}), cudaSuccess);
  EXPECT_EQ(Submit(stream_, CountingWork{calls_}), cudaSuccess);
  EXPECT_EQ(EndCapture(), 2U);
  EXPECT_EQ(calls_.made, 2);
  EXPECT_EQ(calls_.sent, 0);
}

TEST_F(SubmitTest, AnotherStreamsCaptureChangesNothing) {
  BeginCapture();
  EXPECT_EQ(Submit(other_, CountingWork{calls_}), cudaSuccess);
  EXPECT_EQ(calls_.sent, 1);
  EXPECT_EQ(EndCapture(), 0U);
}

TEST_F(SubmitTest, WorkThatMakesNoNodeAddsNone) {
  BeginCapture();
  EXPECT_EQ(Submit(stream_, CountingWork{calls_, cudaErrorInvalidValue}), cudaErrorInvalidValue);
  EXPECT_EQ(EndCapture(), 0U);
}

TEST_F(SubmitTest, WorkWithoutANodeHasItsOwnPlaceInACapture) {
  BeginCapture();
  EXPECT_EQ(Submit(stream_, WorkWithoutNode{calls_}), cudaSuccess);
  EXPECT_EQ(calls_.captured, 1);
  EXPECT_EQ(EndCapture(), 0U);
}

}  // namespace
}  // namespace torpor::shim
