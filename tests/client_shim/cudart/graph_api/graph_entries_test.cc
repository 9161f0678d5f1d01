// Graphs as programs use them, over a core that only takes notes.
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "proto/cuda_api/cudart_commands.h"
#include "tests/client_shim/surface/fake_client_core.h"

namespace torpor::shim {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::uint64_t kDevice = 0x2000'0000'0000;
constexpr std::uint64_t kBytes = 4096;

class GraphClientTest : public testing::Test {
 protected:
  void SetUp() override {
    core_.Forget();
    core_.hello = {};
    core_.hello.device_base = kDevice;
    core_.hello.device_bytes = 1 << 20;
    core_.allocations = {{kDevice, kBytes, true}};
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaGraphCreate(&graph_, 0), cudaSuccess);
    (void)cudaGetLastError();
  }
  void TearDown() override {
    EXPECT_EQ(cudaGraphDestroy(graph_), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
  }

  static cudaMemsetParams Fill(unsigned value) {
    cudaMemsetParams fill{};
    fill.dst = reinterpret_cast<void*>(kDevice);
    fill.value = value;
    fill.elementSize = 1;
    fill.width = 16;
    fill.height = 1;
    return fill;
  }
  cudaGraphNode_t AddFill(unsigned value) const {
    const cudaMemsetParams fill = Fill(value);
    cudaGraphNode_t node = nullptr;
    EXPECT_EQ(cudaGraphAddMemsetNode(&node, graph_, nullptr, 0, &fill), cudaSuccess);
    return node;
  }
  cudaGraphExec_t Instantiate() const {
    cudaGraphExec_t exec = nullptr;
    EXPECT_EQ(cudaGraphInstantiate(&exec, graph_, 0), cudaSuccess);
    return exec;
  }

  FakeClientCore& core_ = FakeClientCore::Get();
  cudaStream_t stream_ = nullptr;
  cudaGraph_t graph_ = nullptr;
};

TEST_F(GraphClientTest, ALaunchIsOneCommand) {
  for (unsigned value = 0; value < 5; ++value) AddFill(value);
  const std::size_t live = core_.live.size();
  const cudaGraphExec_t exec = Instantiate();
  EXPECT_EQ(core_.live.size(), live + 1);
  EXPECT_THAT(core_.settings, ElementsAre(wire::GraphAddNodes::kCallId));
  EXPECT_THAT(core_.sent, IsEmpty());
  ASSERT_EQ(cudaGraphLaunch(exec, stream_), cudaSuccess);
  EXPECT_EQ(core_.Only<wire::GraphLaunch>().stream, reinterpret_cast<std::uint64_t>(stream_));
  ASSERT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  EXPECT_EQ(core_.live.size(), live);
  EXPECT_EQ(cudaGraphLaunch(exec, stream_), cudaErrorInvalidValue);
}

TEST_F(GraphClientTest, ChangesAreSentOnce) {
  const cudaGraphNode_t node = AddFill(1);
  const cudaGraphExec_t exec = Instantiate();
  core_.settings.clear();
  cudaMemsetParams fill = Fill(1);
  ASSERT_EQ(cudaGraphExecMemsetNodeSetParams(exec, node, &fill), cudaSuccess);
  EXPECT_THAT(core_.settings, IsEmpty());
  fill.value = 2;
  ASSERT_EQ(cudaGraphExecMemsetNodeSetParams(exec, node, &fill), cudaSuccess);
  EXPECT_THAT(core_.settings, ElementsAre(wire::GraphSetNode::kCallId));
  const cudaHostNodeParams other_kind{[](void*) {}, nullptr};
  EXPECT_EQ(cudaGraphExecHostNodeSetParams(exec, node, &other_kind), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
}

TEST_F(GraphClientTest, AFillIsCheckedAsThePlainCallIs) {
  cudaGraphNode_t node = nullptr;
  cudaMemsetParams fill = Fill(1);
  fill.elementSize = 4;
  fill.dst = reinterpret_cast<void*>(kDevice + 2);
  EXPECT_EQ(cudaGraphAddMemsetNode(&node, graph_, nullptr, 0, &fill), cudaErrorInvalidValue);
  fill.dst = reinterpret_cast<void*>(kDevice);
  fill.width = 4;
  fill.height = 2;
  fill.pitch = 12;
  EXPECT_EQ(cudaGraphAddMemsetNode(&node, graph_, nullptr, 0, &fill), cudaErrorInvalidValue);
  fill.pitch = 18;
  EXPECT_EQ(cudaGraphAddMemsetNode(&node, graph_, nullptr, 0, &fill), cudaErrorInvalidValue);
  fill.pitch = 20;
  EXPECT_EQ(cudaGraphAddMemsetNode(&node, graph_, nullptr, 0, &fill), cudaSuccess);
  fill.width = ~std::size_t{0} / 2;
  EXPECT_EQ(cudaGraphAddMemsetNode(&node, graph_, nullptr, 0, &fill), cudaErrorInvalidValue);
}

TEST_F(GraphClientTest, CapturedCallsAreNotSent) {
  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed), cudaSuccess);
  void* const device = reinterpret_cast<void*>(kDevice);
  std::vector<char> host(16);
  EXPECT_EQ(cudaMemsetAsync(device, 1, 16, stream_), cudaSuccess);
  EXPECT_EQ(cudaMemcpyAsync(device, host.data(), 16, cudaMemcpyHostToDevice, stream_), cudaSuccess);
  EXPECT_EQ(cudaMemcpyAsync(host.data(), device, 16, cudaMemcpyDeviceToHost, stream_), cudaSuccess);
  EXPECT_EQ(cudaLaunchHostFunc(
                stream_, [](void*) {}, nullptr),
            cudaSuccess);
  cudaGraph_t captured = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream_, &captured), cudaSuccess);
  EXPECT_THAT(core_.sent, IsEmpty());
  std::size_t count = 0;
  EXPECT_EQ(cudaGraphGetNodes(captured, nullptr, &count), cudaSuccess);
  EXPECT_EQ(count, 4u);
  std::vector<cudaGraphNode_t> nodes(count + 1, reinterpret_cast<cudaGraphNode_t>(1));
  count = nodes.size();
  EXPECT_EQ(cudaGraphGetNodes(captured, nodes.data(), &count), cudaSuccess);
  EXPECT_EQ(count, 4u);
  EXPECT_EQ(nodes.back(), nullptr) << "the rest is filled with null";
  EXPECT_EQ(cudaGraphDestroy(captured), cudaSuccess);
}

TEST_F(GraphClientTest, OtherLibrariesCommandsAreCapturedThroughTheCore) {
  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed), cudaSuccess);
  StreamGate* const gate = core_.stream_gate();
  ASSERT_NE(gate, nullptr);
  const auto handle = reinterpret_cast<std::uint64_t>(stream_);
  EXPECT_TRUE(gate->IsCapturing(handle));
  EXPECT_FALSE(gate->IsCapturing(0));
  const auto needed = std::make_shared<int>();
  EXPECT_EQ(gate->Capture(handle, {1500, {}}, needed), cudaSuccess);
  cudaGraph_t captured = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream_, &captured), cudaSuccess);
  EXPECT_FALSE(gate->IsCapturing(handle));
  EXPECT_EQ(gate->Await(handle), cudaSuccess);
  cudaGraphNode_t node = nullptr;
  std::size_t count = 1;
  EXPECT_EQ(cudaGraphGetNodes(captured, &node, &count), cudaSuccess);
  cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
  EXPECT_EQ(cudaGraphNodeGetType(node, &type), cudaSuccess);
  EXPECT_EQ(type, cudaGraphNodeTypeKernel);
  cudaGraphExec_t exec = nullptr;
  EXPECT_EQ(cudaGraphInstantiate(&exec, captured, 0), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(captured), cudaSuccess);
  EXPECT_GT(needed.use_count(), 1) << "the other graph has it still";
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  EXPECT_EQ(needed.use_count(), 1);
}

TEST_F(GraphClientTest, WhatCannotBeCapturedOfOtherLibrariesBreaksTheCapture) {
  cudaStream_t blocking = nullptr;
  ASSERT_EQ(cudaStreamCreate(&blocking), cudaSuccess);
  const auto handle = reinterpret_cast<std::uint64_t>(blocking);
  cudaGraph_t captured = nullptr;
  ASSERT_EQ(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeRelaxed), cudaSuccess);
  EXPECT_EQ(core_.stream_gate()->Await(handle), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(core_.stream_gate()->Await(handle), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(cudaStreamEndCapture(blocking, &captured), cudaErrorStreamCaptureInvalidated);
  ASSERT_EQ(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeRelaxed), cudaSuccess);
  EXPECT_EQ(core_.stream_gate()->Await(0), cudaErrorStreamCaptureImplicit);
  EXPECT_EQ(cudaStreamEndCapture(blocking, &captured), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(cudaStreamDestroy(blocking), cudaSuccess);
}

TEST_F(GraphClientTest, AResetEndsCaptures) {
  cudaStream_t blocking = nullptr;
  ASSERT_EQ(cudaStreamCreate(&blocking), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeRelaxed), cudaSuccess);
  ASSERT_EQ(cudaDeviceReset(), cudaSuccess);
  core_.allocations = {{kDevice, kBytes, true}};
  EXPECT_EQ(cudaMemset(reinterpret_cast<void*>(kDevice), 0, 16), cudaSuccess);
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
}

TEST_F(GraphClientTest, ACaptureEndsWithTheThreadOfItsStream) {
  core_.per_thread_stream = FakeClientCore::kPerThreadStream + 2;
  std::thread([] {
    EXPECT_EQ(cudaStreamBeginCapture(cudaStreamPerThread, cudaStreamCaptureModeRelaxed),
              cudaSuccess);
  }).join();
  EXPECT_EQ(cudaMemset(reinterpret_cast<void*>(kDevice), 0, 16), cudaSuccess);
}

TEST_F(GraphClientTest, BadHandlesAreRefused) {
  const auto no_graph = reinterpret_cast<cudaGraph_t>(this);
  const auto no_node = reinterpret_cast<cudaGraphNode_t>(this);
  const auto no_exec = reinterpret_cast<cudaGraphExec_t>(this);
  cudaGraph_t clone = nullptr;
  std::size_t count = 0;
  cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
  cudaGraphExec_t exec = nullptr;
  cudaGraphNode_t node = nullptr;
  EXPECT_EQ(cudaGraphDestroy(no_graph), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGraphClone(&clone, no_graph), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGraphInstantiate(&exec, no_graph, 0), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGraphAddEmptyNode(&node, graph_, &no_node, 1), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGraphNodeGetType(no_node, &type), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGraphNodeGetDependencies(no_node, nullptr, nullptr, &count), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGraphLaunch(no_exec, stream_), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGraphExecDestroy(no_exec), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGraphChildGraphNodeGetGraph(AddFill(1), &clone), cudaErrorInvalidValue);
}

TEST_F(GraphClientTest, ACaptureDoesNotSurviveALaunchNorAQuestionAboutItsWork) {
  AddFill(1);
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph_, 0), cudaSuccess);
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  cudaGraph_t captured = nullptr;
  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed), cudaSuccess);
  EXPECT_EQ(cudaGraphLaunch(exec, stream_), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(cudaStreamEndCapture(stream_, &captured), cudaErrorStreamCaptureInvalidated);
  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(event, stream_), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event), cudaErrorCapturedEvent);
  EXPECT_EQ(cudaStreamEndCapture(stream_, &captured), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(cudaEventQuery(event), cudaErrorCapturedEvent);
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
}

TEST_F(GraphClientTest, WhatIsNotSupportedSaysSo) {
  cudaGraphNodeParams conditional{};
  conditional.type = cudaGraphNodeTypeConditional;
  cudaGraphNode_t node = nullptr;
  EXPECT_EQ(cudaGraphAddNode(&node, graph_, nullptr, nullptr, 0, &conditional),
            cudaErrorNotSupported);
  cudaMemcpy3DParms copy{};
  copy.srcArray = reinterpret_cast<cudaArray_t>(this);
  copy.dstPtr.ptr = reinterpret_cast<void*>(kDevice);
  EXPECT_EQ(cudaGraphAddMemcpyNode(&node, graph_, nullptr, 0, &copy), cudaErrorNotSupported);
  cudaGraphExec_t exec = nullptr;
  EXPECT_EQ(cudaGraphInstantiate(&exec, graph_, cudaGraphInstantiateFlagDeviceLaunch),
            cudaErrorNotSupported);
  EXPECT_EQ(core_.warnings.size(), 3u);
}

}  // namespace
}  // namespace torpor::shim
