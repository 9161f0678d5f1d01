// What processes share by handles: which calls they lead to, and what is refused.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstring>

#include "client_shim/cudart/overrides.h"
#include "proto/cuda_api/cudart_commands.h"
#include "tests/client_shim/surface/fake_client_core.h"

namespace torpor::shim {
namespace {

constexpr unsigned kShared = cudaEventInterprocess | cudaEventDisableTiming;
constexpr unsigned kLazy = cudaIpcMemLazyEnablePeerAccess;

class InterprocessClientTest : public testing::Test {
 protected:
  void SetUp() override {
    core_.Forget();
    core_.hello = {};
    core_.hello.devices.resize(1);
    core_.hello.session_id = 7;
    core_.has_slots = true;
    core_.hello.device_bytes = 1 << 20;
    (void)cudaGetLastError();
  }
  void TearDown() override { core_.Forget(); }

  void* Allocate() {
    void* memory = nullptr;
    EXPECT_EQ(cudaMalloc(&memory, 4096), cudaSuccess);
    return memory;
  }
  // As if another process had made it.
  cudaIpcMemHandle_t ForeignHandle() {
    cudaIpcMemHandle_t handle;
    void* const memory = Allocate();
    EXPECT_EQ(cudaIpcGetMemHandle(&handle, memory), cudaSuccess);
    EXPECT_EQ(cudaFree(memory), cudaSuccess);
    core_.freed.clear();
    return handle;
  }
  void AnswerQueries(std::uint32_t is_complete) {
    std::vector<std::uint8_t> bytes;
    wire::Writer writer(bytes);
    writer(wire::SharedEventQueryResult{is_complete});
    core_.results[wire::SharedEventQuery::kCallId] = bytes;
  }
  cudaEvent_t ForeignEvent() {
    cudaEvent_t own = nullptr;
    cudaIpcEventHandle_t handle;
    EXPECT_EQ(cudaEventCreateWithFlags(&own, kShared), cudaSuccess);
    EXPECT_EQ(cudaIpcGetEventHandle(&handle, own), cudaSuccess);
    EXPECT_EQ(cudaEventDestroy(own), cudaSuccess);
    core_.hello.session_id = 8;
    AnswerQueries(1);
    cudaEvent_t event = nullptr;
    EXPECT_EQ(cudaIpcOpenEventHandle(&event, handle), cudaSuccess);
    core_.sent.clear();
    return event;
  }

  FakeClientCore& core_ = FakeClientCore::Get();
};

TEST_F(InterprocessClientTest, AHandleIsOfTheWholeAllocation) {
  auto* const memory = static_cast<char*>(Allocate());
  cudaIpcMemHandle_t whole;
  cudaIpcMemHandle_t part;
  EXPECT_EQ(cudaIpcGetMemHandle(&whole, memory), cudaSuccess);
  EXPECT_EQ(cudaIpcGetMemHandle(&part, memory + 100), cudaSuccess);
  EXPECT_EQ(std::memcmp(&whole, &part, sizeof whole), 0);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
  EXPECT_EQ(cudaIpcGetMemHandle(&whole, memory), cudaErrorInvalidValue);
}

TEST_F(InterprocessClientTest, WhatIsNoAllocationOfCudaMallocIsRefused) {
  cudaIpcMemHandle_t handle;
  int on_stack = 0;
  EXPECT_EQ(cudaIpcGetMemHandle(&handle, &on_stack), cudaErrorInvalidValue);
  EXPECT_EQ(cudaIpcGetMemHandle(nullptr, &on_stack), cudaErrorInvalidValue);
  void* memory = nullptr;
  ASSERT_EQ(cudaMallocHost(&memory, 4096), cudaSuccess);
  EXPECT_EQ(cudaIpcGetMemHandle(&handle, memory), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFreeHost(memory), cudaSuccess);
  ASSERT_EQ(cudaMallocAsync(&memory, 4096, nullptr), cudaSuccess);
  EXPECT_EQ(cudaIpcGetMemHandle(&handle, memory), cudaErrorInvalidValue);
  EXPECT_EQ(cudaDeviceReset(), cudaSuccess);
}

TEST_F(InterprocessClientTest, OpenedMemoryIsOnlyClosed) {
  const cudaIpcMemHandle_t handle = ForeignHandle();
  void* memory = nullptr;
  ASSERT_EQ(cudaIpcOpenMemHandle(&memory, handle, kLazy), cudaSuccess);
  cudaPointerAttributes attributes;
  EXPECT_EQ(cudaPointerGetAttributes(&attributes, memory), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
  cudaIpcMemHandle_t again;
  EXPECT_EQ(cudaIpcGetMemHandle(&again, memory), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(memory), cudaErrorInvalidValue);
  EXPECT_EQ(cudaIpcCloseMemHandle(static_cast<char*>(memory) + 8), cudaErrorInvalidValue);
  EXPECT_TRUE(core_.freed.empty());
  core_.is_drained = false;
  EXPECT_EQ(cudaIpcCloseMemHandle(memory), cudaSuccess);
  EXPECT_EQ(core_.freed.size(), 1u);
  EXPECT_EQ(core_.Calls(), std::vector<std::uint32_t>{wire::DeviceSynchronize::kCallId})
      << "nothing may use it any more";
  EXPECT_EQ(cudaIpcCloseMemHandle(memory), cudaErrorInvalidValue);
}

TEST_F(InterprocessClientTest, OwnMemoryIsNotClosed) {
  void* const memory = Allocate();
  EXPECT_EQ(cudaIpcCloseMemHandle(memory), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

TEST_F(InterprocessClientTest, OtherBytesAreNoHandle) {
  cudaIpcMemHandle_t handle{};
  void* memory = nullptr;
  EXPECT_EQ(cudaIpcOpenMemHandle(&memory, handle, kLazy), cudaErrorInvalidResourceHandle);
  handle = ForeignHandle();
  EXPECT_EQ(cudaIpcOpenMemHandle(&memory, handle, 2), cudaErrorInvalidValue);
  EXPECT_EQ(cudaIpcOpenMemHandle(nullptr, handle, kLazy), cudaErrorInvalidValue);
  cudaIpcEventHandle_t event_handle;
  std::memcpy(&event_handle, &handle, sizeof event_handle);
  cudaEvent_t event = nullptr;
  EXPECT_EQ(cudaIpcOpenEventHandle(&event, event_handle), cudaErrorInvalidResourceHandle);
}

TEST_F(InterprocessClientTest, MemoryOfAGpuThatCannotBeReachedIsNotOpened) {
  const cudaIpcMemHandle_t handle = ForeignHandle();
  core_.hello.devices.resize(2);
  core_.foreign_device = 1;
  void* memory = nullptr;
  EXPECT_EQ(cudaIpcOpenMemHandle(&memory, handle, kLazy), cudaErrorPeerAccessUnsupported);
  EXPECT_EQ(core_.freed.size(), 1u);
  core_.hello.has_peer_access = true;
  EXPECT_EQ(cudaIpcOpenMemHandle(&memory, handle, kLazy), cudaSuccess);
  EXPECT_EQ(cudaIpcCloseMemHandle(memory), cudaSuccess);
}

TEST_F(InterprocessClientTest, SharedEventsTellNoTimes) {
  cudaEvent_t event = nullptr;
  EXPECT_EQ(cudaEventCreateWithFlags(&event, cudaEventInterprocess), cudaErrorInvalidValue);
  ASSERT_EQ(cudaEventCreateWithFlags(&event, kShared), cudaSuccess);
  float ms = 0;
  EXPECT_EQ(cudaEventElapsedTime(&ms, event, event), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
}

TEST_F(InterprocessClientTest, OnlyOwnSharedEventsHaveHandles) {
  cudaIpcEventHandle_t handle;
  cudaEvent_t plain = nullptr;
  ASSERT_EQ(cudaEventCreate(&plain), cudaSuccess);
  EXPECT_EQ(cudaIpcGetEventHandle(&handle, plain), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventDestroy(plain), cudaSuccess);
  const cudaEvent_t foreign = ForeignEvent();
  EXPECT_EQ(cudaIpcGetEventHandle(&handle, foreign), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventDestroy(foreign), cudaSuccess);
}

TEST_F(InterprocessClientTest, AProcessDoesNotOpenItsOwnEvent) {
  cudaEvent_t event = nullptr;
  cudaIpcEventHandle_t handle;
  ASSERT_EQ(cudaEventCreateWithFlags(&event, kShared), cudaSuccess);
  ASSERT_EQ(cudaIpcGetEventHandle(&handle, event), cudaSuccess);
  cudaEvent_t opened = nullptr;
  EXPECT_EQ(cudaIpcOpenEventHandle(&opened, handle), cudaErrorDeviceUninitialized);
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
}

TEST_F(InterprocessClientTest, ForeignEventsAreAskedForByTheirOwnersSlots) {
  const cudaEvent_t event = ForeignEvent();
  ASSERT_EQ(cudaEventRecord(event, nullptr), cudaSuccess);
  EXPECT_EQ(core_.Only<wire::SharedEventRecord>().owner, 7u);
  core_.sent.clear();
  ASSERT_EQ(cudaStreamWaitEvent(nullptr, event, 0), cudaSuccess);
  EXPECT_EQ(core_.Only<wire::SharedEventWait>().owner, 7u);
  core_.sent.clear();
  EXPECT_EQ(cudaEventQuery(event), cudaSuccess);
  AnswerQueries(0);
  EXPECT_EQ(cudaEventQuery(event), cudaErrorNotReady);
  AnswerQueries(1);
  EXPECT_EQ(cudaEventSynchronize(event), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
  EXPECT_EQ(core_.freed_slots, 0) << "of its owner's page";
}

TEST_F(InterprocessClientTest, SharedEventsAreNotCaptured) {
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaEventCreateWithFlags(&event, kShared), cudaSuccess);
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(event, stream), cudaErrorNotSupported);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
  ASSERT_EQ(cudaGraphCreate(&graph, 0), cudaSuccess);
  cudaGraphNode_t node = nullptr;
  EXPECT_EQ(cudaGraphAddEventRecordNode(&node, graph, nullptr, 0, event), cudaErrorNotSupported);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
}

}  // namespace
}  // namespace torpor::shim
