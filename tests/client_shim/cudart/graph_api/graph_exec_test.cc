// What instantiated graphs do when they are changed and launched, over a core that only takes
// notes.
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

#include "proto/cuda_api/cudart_commands.h"
#include "tests/client_shim/surface/fake_client_core.h"
#include "tests/client_shim/surface/fake_device.h"

namespace torpor::shim {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::atomic<int> calls;
void CUDART_CB CountCall(void*) { ++calls; }

class GraphExecTest : public testing::Test {
 protected:
  void SetUp() override {
    core_.Forget();
    core_.hello = OneDevice();
    core_.has_slots = true;
    core_.allocations = {{kDevice, kBytes, true}, {kHost, kBytes, false}};
    calls = 0;
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaStreamCreateWithFlags(&other_, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaGraphCreate(&graph_, 0), cudaSuccess);
    (void)cudaGetLastError();
  }
  void TearDown() override {
    if (exec_) {
      EXPECT_EQ(cudaGraphExecDestroy(exec_), cudaSuccess);
    }
    EXPECT_EQ(cudaGraphDestroy(graph_), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(other_), cudaSuccess);
  }

  static std::vector<cudaGraphNode_t> Behind(cudaGraphNode_t node) {
    return node ? std::vector{node} : std::vector<cudaGraphNode_t>();
  }
  cudaGraphNode_t AddHost(cudaGraphNode_t before = nullptr) const {
    const cudaHostNodeParams count{CountCall, nullptr};
    const auto dependencies = Behind(before);
    cudaGraphNode_t node = nullptr;
    EXPECT_EQ(cudaGraphAddHostNode(&node, graph_, dependencies.data(), dependencies.size(), &count),
              cudaSuccess);
    return node;
  }
  cudaGraphNode_t AddCopy(void* to, const void* from, cudaGraphNode_t before = nullptr) const {
    const auto dependencies = Behind(before);
    cudaGraphNode_t node = nullptr;
    EXPECT_EQ(cudaGraphAddMemcpyNode1D(&node, graph_, dependencies.data(), dependencies.size(), to,
                                       from, kCopied, cudaMemcpyDefault),
              cudaSuccess);
    return node;
  }
  void Instantiate() {
    ASSERT_EQ(cudaGraphInstantiate(&exec_, graph_, 0), cudaSuccess);
    core_.sent.clear();
    core_.configured.clear();
  }
  cudaError_t SetCopy(cudaGraphNode_t node, void* to, const void* from) const {
    return cudaGraphExecMemcpyNodeSetParams1D(exec_, node, to, from, kCopied, cudaMemcpyDefault);
  }

  static constexpr std::size_t kCopied = 64;

  FakeClientCore& core_ = FakeClientCore::Get();
  cudaStream_t stream_ = nullptr;
  cudaStream_t other_ = nullptr;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t exec_ = nullptr;
  char pageable_[kCopied] = {};
};

// Two functions of one stage, between which the stream waits for an event of somebody else.
TEST_F(GraphExecTest, AFunctionWaitsForTheEventBeforeIt) {
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(event, nullptr), cudaSuccess);
  const cudaGraphNode_t first = AddHost();
  cudaGraphNode_t wait = nullptr;
  ASSERT_EQ(cudaGraphAddEventWaitNode(&wait, graph_, &first, 1, event), cudaSuccess);
  AddHost(wait);
  Instantiate();
  ASSERT_EQ(cudaGraphLaunch(exec_, stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_EQ(calls, 2);
  EXPECT_THAT(core_.Calls(),
              ElementsAre(wire::StreamMark::kCallId, wire::StreamWaitEvent::kCallId,
                          wire::StreamMark::kCallId, wire::StreamSynchronize::kCallId));
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
}

// The second copy can no longer be encoded, which shows when the first needs another plan.
TEST_F(GraphExecTest, WhatFailsToChangeStaysAsItWas) {
  void* freed = nullptr;
  ASSERT_EQ(cudaMalloc(&freed, kCopied), cudaSuccess);
  const cudaGraphNode_t first = AddCopy(At(kDevice), At(kHost));
  const cudaGraphNode_t second = AddCopy(freed, At(kHost), first);
  core_.hello.device_bytes = kHost - kDevice;  // with all that Malloc gives
  Instantiate();
  const std::size_t live = core_.live.size();
  ASSERT_EQ(cudaFree(freed), cudaSuccess);
  EXPECT_EQ(SetCopy(first, At(kDevice), pageable_), cudaErrorInvalidValue);
  EXPECT_EQ(core_.live.size(), live);
  EXPECT_THAT(core_.configured, IsEmpty());

  EXPECT_EQ(SetCopy(second, At(kDevice + 128), At(kHost)), cudaSuccess);
  ASSERT_EQ(core_.configured.size(), 1u);
  const auto change = FakeClientCore::Decode<wire::GraphSetNode>(core_.configured.front());
  EXPECT_EQ(change.node, 1u);
  core_.sent.clear();
  ASSERT_EQ(cudaGraphLaunch(exec_, stream_), cudaSuccess);
  EXPECT_EQ(core_.Only<wire::GraphLaunch>().graph, change.graph);

  // Now it can; the upload is the client's.
  EXPECT_EQ(SetCopy(first, At(kDevice), pageable_), cudaSuccess);
  core_.sent.clear();
  ASSERT_EQ(cudaGraphLaunch(exec_, stream_), cudaSuccess);
  EXPECT_THAT(core_.Calls(), ElementsAre(wire::MemcpyHtoD::kCallId, wire::GraphLaunch::kCallId));
}

TEST_F(GraphExecTest, AnUpdateThatFailsIsTakenBack) {
  AddCopy(At(kDevice), At(kHost));
  AddCopy(At(kDevice + 64), At(kHost));
  Instantiate();
  cudaGraph_t changed = nullptr;
  ASSERT_EQ(cudaGraphCreate(&changed, 0), cudaSuccess);
  std::swap(graph_, changed);
  void* freed = nullptr;
  ASSERT_EQ(cudaMalloc(&freed, kCopied), cudaSuccess);
  AddCopy(At(kDevice + 128), At(kHost));
  AddCopy(freed, At(kHost));
  std::swap(graph_, changed);
  core_.hello.device_bytes = kHost - kDevice;
  ASSERT_EQ(cudaFree(freed), cudaSuccess);
  core_.configured.clear();
  cudaGraphExecUpdateResultInfo info{};
  EXPECT_EQ(cudaGraphExecUpdate(exec_, changed, &info), cudaErrorInvalidValue);
  // Whatever was told of the first node was told again as it was.
  EXPECT_EQ(core_.configured.size() % 2, 0u);
  EXPECT_EQ(cudaGraphExecUpdate(exec_, graph_, &info), cudaSuccess);
  EXPECT_EQ(core_.configured.size() % 2, 0u) << "nothing is new";
  EXPECT_EQ(cudaGraphDestroy(changed), cudaSuccess);
}

TEST_F(GraphExecTest, LaunchesInSeveralStreamsComeOneAfterAnother) {
  const cudaGraphNode_t upload = AddCopy(At(kDevice), pageable_);
  AddCopy(At(kDevice + 64), At(kDevice), upload);
  Instantiate();
  ASSERT_EQ(cudaGraphLaunch(exec_, stream_), cudaSuccess);
  ASSERT_EQ(cudaGraphLaunch(exec_, stream_), cudaSuccess);
  EXPECT_EQ(core_.sent.size(), 4u) << "a stream orders its own";
  core_.sent.clear();
  ASSERT_EQ(cudaGraphLaunch(exec_, other_), cudaSuccess);
  EXPECT_THAT(core_.Calls(), ElementsAre(wire::EventRecord::kCallId, wire::StreamWaitEvent::kCallId,
                                         wire::MemcpyHtoD::kCallId, wire::GraphLaunch::kCallId));
  EXPECT_EQ(FakeClientCore::Decode<wire::EventRecord>(core_.sent[0]).stream,
            reinterpret_cast<std::uint64_t>(stream_));
  EXPECT_EQ(FakeClientCore::Decode<wire::StreamWaitEvent>(core_.sent[1]).stream,
            reinterpret_cast<std::uint64_t>(other_));
}

TEST_F(GraphExecTest, LaunchesThatAreOneCommandAreOrderedByTheExecutor) {
  AddCopy(At(kDevice), At(kHost));
  Instantiate();
  ASSERT_EQ(cudaGraphLaunch(exec_, stream_), cudaSuccess);
  ASSERT_EQ(cudaGraphLaunch(exec_, other_), cudaSuccess);
  EXPECT_THAT(core_.Calls(), ElementsAre(wire::GraphLaunch::kCallId, wire::GraphLaunch::kCallId));
}

// The old graph's wrapper is destroyed behind the reset; its address belongs to somebody else.
TEST_F(GraphExecTest, AResetForgetsGraphMemory) {
  cudaMemAllocNodeParams allocation{};
  allocation.poolProps.allocType = cudaMemAllocationTypePinned;
  allocation.poolProps.location = {cudaMemLocationTypeDevice, 0};
  allocation.bytesize = kBytes;
  cudaGraphNode_t node = nullptr;
  ASSERT_EQ(cudaGraphAddMemAllocNode(&node, graph_, nullptr, 0, &allocation), cudaSuccess);
  ASSERT_EQ(cudaDeviceReset(), cudaSuccess);
  ASSERT_EQ(cudaStreamCreate(&stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamCreate(&other_), cudaSuccess);
  const auto address = reinterpret_cast<std::uint64_t>(allocation.dptr);
  core_.allocations = {{address, kBytes, true}};
  EXPECT_EQ(cudaGraphDestroy(graph_), cudaSuccess);
  EXPECT_THAT(core_.freed, IsEmpty());
  EXPECT_EQ(cudaFree(allocation.dptr), cudaSuccess);
  EXPECT_THAT(core_.freed, ElementsAre(address));
  ASSERT_EQ(cudaGraphCreate(&graph_, 0), cudaSuccess);
}

TEST_F(GraphExecTest, DestroyingAGraphTakesNoErrorOfEarlierWork) {
  cudaMemAllocNodeParams allocation{};
  allocation.poolProps.allocType = cudaMemAllocationTypePinned;
  allocation.poolProps.location = {cudaMemLocationTypeDevice, 0};
  allocation.bytesize = kBytes;
  cudaGraphNode_t node = nullptr;
  ASSERT_EQ(cudaGraphAddMemAllocNode(&node, graph_, nullptr, 0, &allocation), cudaSuccess);
  core_.is_drained = false;
  core_.async_error = cudaErrorLaunchFailure;
  EXPECT_EQ(cudaGraphDestroy(graph_), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
  ASSERT_EQ(cudaGraphCreate(&graph_, 0), cudaSuccess);
}

// The copy to pageable memory waits on the thread of host functions.
TEST_F(GraphExecTest, AnErrorThatALaunchMeetsLaterIsToldByTheNextSynchronisation) {
  AddCopy(pageable_, At(kDevice));
  Instantiate();
  core_.slots_stall = true;
  core_.is_drained = false;
  ASSERT_EQ(cudaGraphLaunch(exec_, stream_), cudaSuccess);
  core_.async_error = cudaErrorLaunchFailure;
  core_.stalled_looks = 1;
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
}

// A graph that launches the kernel (char, double) of a library.
class KernelGraphTest : public GraphExecTest {
 protected:
  void SetUp() override {
    GraphExecTest::SetUp();
    wire::ModuleLoadResult loaded;
    loaded.found = 1;
    wire::KernelEntry& kernel = loaded.kernels.emplace_back();
    kernel.name = "kernel";
    kernel.parameters = {{0, 1}, {8, 8}};
    core_.reply.result = wire::Encoded(loaded);
    ASSERT_EQ(
        cudaLibraryLoadData(&library_, ".version 8.0", nullptr, nullptr, 0, nullptr, nullptr, 0),
        cudaSuccess);
    core_.reply = {};
    ASSERT_EQ(cudaLibraryGetKernel(&kernel_, library_, "kernel"), cudaSuccess);
    ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed), cudaSuccess);
    ASSERT_EQ(cudaLaunchCooperativeKernel(kernel_, dim3(1), dim3(32), arguments_, 0, stream_),
              cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph_), cudaSuccess);
    ASSERT_EQ(cudaStreamEndCapture(stream_, &graph_), cudaSuccess);
    std::size_t count = 1;
    ASSERT_EQ(cudaGraphGetNodes(graph_, &node_, &count), cudaSuccess);
  }
  void TearDown() override {
    GraphExecTest::TearDown();
    if (library_) {
      EXPECT_EQ(cudaLibraryUnload(library_), cudaSuccess);
    }
  }
  cudaKernelNodeParams Parameters(unsigned blocks) {
    return {kernel_, dim3(blocks), dim3(32), 0, arguments_, nullptr};
  }

  cudaLibrary_t library_ = nullptr;
  cudaKernel_t kernel_ = nullptr;
  cudaGraphNode_t node_ = nullptr;
  char letter_ = 'x';
  double number_ = 2.5;
  void* arguments_[2] = {&letter_, &number_};
};

TEST_F(KernelGraphTest, NewParametersLeaveAKernelCooperative) {
  Instantiate();
  const cudaKernelNodeParams parameters = Parameters(2);
  ASSERT_EQ(cudaGraphExecKernelNodeSetParams(exec_, node_, &parameters), cudaSuccess);
  ASSERT_EQ(core_.configured.size(), 1u);
  const auto change = FakeClientCore::Decode<wire::GraphSetNode>(core_.configured.front());
  ASSERT_EQ(change.commands.size(), 1u);
  const FakeClientCore::Sent command{
      change.commands[0].call_id,
      {change.commands[0].fields.begin(), change.commands[0].fields.end()}};
  const auto launch = FakeClientCore::Decode<wire::LaunchKernel>(command);
  EXPECT_EQ(launch.grid[0], 2u);
  EXPECT_EQ(launch.flags, wire::kLaunchCooperative);

  cudaGraphNodeParams any{};
  any.type = cudaGraphNodeTypeKernel;
  any.kernel.func = kernel_;
  any.kernel.gridDim = any.kernel.blockDim = dim3(1);
  any.kernel.kernelParams = arguments_;
  ASSERT_EQ(cudaGraphNodeSetParams(node_, &any), cudaSuccess);
  cudaLaunchAttributeValue value{};
  EXPECT_EQ(cudaGraphKernelNodeGetAttribute(node_, cudaLaunchAttributeCooperative, &value),
            cudaSuccess);
  EXPECT_EQ(value.cooperative, 1);
}

TEST_F(KernelGraphTest, AKernelWhoseLibraryIsGoneIsStillKnownButDoesNotRun) {
  ASSERT_EQ(cudaLibraryUnload(library_), cudaSuccess);
  library_ = nullptr;
  cudaKernelNodeParams parameters{};
  ASSERT_EQ(cudaGraphKernelNodeGetParams(node_, &parameters), cudaSuccess);
  EXPECT_EQ(parameters.func, kernel_);
  EXPECT_EQ(*static_cast<double*>(parameters.kernelParams[1]), 2.5);
  cudaGraphExec_t exec = nullptr;
  EXPECT_EQ(cudaGraphInstantiate(&exec, graph_, 0), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaGraphAddKernelNode(&node_, graph_, nullptr, 0, &parameters),
            cudaErrorInvalidDeviceFunction);
}

}  // namespace
}  // namespace torpor::shim
