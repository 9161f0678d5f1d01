// A program that sees two devices: which session a call goes to.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <thread>

#include "client_shim/cudart/overrides.h"
#include "proto/cuda_api/cudart_commands.h"
#include "tests/client_shim/surface/fake_client_core.h"

namespace torpor::shim {
namespace {

constexpr std::uint64_t kFirstBase = 0x2000'0000'0000;
constexpr std::uint64_t kSecondBase = 0x2010'0000'0000;
constexpr std::uint64_t kBytes = 4096;

void* At(std::uint64_t address) { return reinterpret_cast<void*>(address); }

class DevicesClientTest : public testing::Test {
 protected:
  void SetUp() override {
    for (FakeClientCore* const core : {&first_, &second_}) {
      core->Forget();
      core->hello = {};
      core->hello.devices.resize(2);
      core->hello.has_peer_access = true;
      core->hello.device_bytes = 1 << 20;
      core->has_slots = true;
      // Both know all of the process's memory.
      core->allocations = {{kFirstBase, kBytes, true, 0}, {kSecondBase, kBytes, true, 1}};
      core->is_drained = false;
    }
    first_.hello.device_base = kFirstBase;
    first_.hello.session_id = 11;
    second_.hello.device_base = kSecondBase;
    second_.hello.session_id = 22;
    (void)cudaGetLastError();
  }
  void TearDown() override {
    EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
    for (FakeClientCore* const core : {&first_, &second_}) core->Forget();
    first_.hello.devices.clear();
  }

  template <typename Command>
  static Command Last(const FakeClientCore& core) {
    Command command;
    EXPECT_FALSE(core.sent.empty());
    if (core.sent.empty()) return command;
    EXPECT_EQ(core.sent.back().call_id, Command::kCallId);
    wire::Reader reader(core.sent.back().fields);
    reader(command);
    return command;
  }
  // The first device's copy `call_id`, between the two.
  void ExpectBehindBoth(std::uint32_t call_id) {
    EXPECT_EQ(first_.Calls(), (std::vector<std::uint32_t>{wire::DeviceSynchronize::kCallId, call_id,
                                                          wire::StreamSynchronize::kCallId}));
    EXPECT_EQ(second_.Calls(), std::vector<std::uint32_t>{wire::DeviceSynchronize::kCallId});
  }
  cudaStream_t StreamOn(int device) {
    EXPECT_EQ(cudaSetDevice(device), cudaSuccess);
    cudaStream_t stream = nullptr;
    EXPECT_EQ(cudaStreamCreate(&stream), cudaSuccess);
    return stream;
  }
  cudaEvent_t EventOn(int device) {
    EXPECT_EQ(cudaSetDevice(device), cudaSuccess);
    cudaEvent_t event = nullptr;
    EXPECT_EQ(cudaEventCreate(&event), cudaSuccess);
    return event;
  }

  FakeClientCore& first_ = FakeClientCore::Get();
  FakeClientCore& second_ = FakeClientCore::Second();
};

TEST_F(DevicesClientTest, TheCurrentDeviceIsTheThreadsOwn) {
  int count = 0;
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  EXPECT_EQ(count, 2);
  EXPECT_EQ(cudaSetDevice(2), cudaErrorInvalidDevice);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  int device = -1;
  EXPECT_EQ(cudaGetDevice(&device), cudaSuccess);
  EXPECT_EQ(device, 1);
  std::thread([] {
    int other = -1;
    EXPECT_EQ(cudaGetDevice(&other), cudaSuccess);
    EXPECT_EQ(other, 0);
  }).join();
}

TEST_F(DevicesClientTest, WhatNamesNoObjectGoesToTheCurrentDevice) {
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  ASSERT_EQ(cudaMemsetAsync(At(kSecondBase), 1, 16, nullptr), cudaSuccess);
  EXPECT_TRUE(first_.sent.empty());
  EXPECT_EQ(Last<wire::Memset>(second_).dst, kSecondBase);
}

TEST_F(DevicesClientTest, AStreamsWorkGoesToItsDevice) {
  const cudaStream_t stream = StreamOn(1);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  ASSERT_EQ(cudaMemsetAsync(At(kSecondBase), 1, 16, stream), cudaSuccess);
  EXPECT_TRUE(first_.sent.empty());
  EXPECT_EQ(second_.sent.size(), 1u);
  int device = -1;
  EXPECT_EQ(cudaStreamGetDevice(stream, &device), cudaSuccess);
  EXPECT_EQ(device, 1);
  // And the next call is the current device's again.
  ASSERT_EQ(cudaMemsetAsync(At(kFirstBase), 1, 16, nullptr), cudaSuccess);
  EXPECT_EQ(first_.sent.size(), 1u);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST_F(DevicesClientTest, AnEventIsRecordedOnItsOwnDeviceOnly) {
  const cudaEvent_t event = EventOn(0);
  const cudaStream_t stream = StreamOn(1);
  EXPECT_EQ(cudaEventRecord(event, stream), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventRecord(event, nullptr), cudaErrorInvalidResourceHandle);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(event, nullptr), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST_F(DevicesClientTest, AnotherDevicesEventIsWaitedForByItsMark) {
  const cudaEvent_t event = EventOn(0);
  first_.slots_stall = true;
  ASSERT_EQ(cudaEventRecord(event, nullptr), cudaSuccess);
  const auto record = Last<wire::EventRecord>(first_);
  const cudaStream_t stream = StreamOn(1);
  ASSERT_EQ(cudaStreamWaitEvent(stream, event, 0), cudaSuccess);
  EXPECT_EQ(first_.flushes, 1) << "the record must be on its way";
  const auto wait = Last<wire::StreamWaitMark>(second_);
  EXPECT_EQ(wait.session, 11u);
  EXPECT_EQ(wait.slot, record.slot);
  EXPECT_EQ(wait.value, record.value);
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST_F(DevicesClientTest, AnotherDevicesEventThatIsOverIsNotWaitedFor) {
  const cudaEvent_t event = EventOn(0);
  ASSERT_EQ(cudaEventRecord(event, nullptr), cudaSuccess);
  const cudaStream_t stream = StreamOn(1);
  ASSERT_EQ(cudaStreamWaitEvent(stream, event, 0), cudaSuccess);
  EXPECT_TRUE(second_.sent.empty());
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST_F(DevicesClientTest, AnEventWithoutASlotIsAwaitedByTheCaller) {
  first_.has_slots = false;
  const cudaEvent_t event = EventOn(0);
  ASSERT_EQ(cudaEventRecord(event, nullptr), cudaSuccess);
  const cudaStream_t stream = StreamOn(1);
  ASSERT_EQ(cudaStreamWaitEvent(stream, event, 0), cudaSuccess);
  EXPECT_EQ(first_.sent.back().call_id, wire::EventSynchronize::kCallId);
  EXPECT_TRUE(second_.sent.empty());
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST_F(DevicesClientTest, AddressesTellTheirDevice) {
  cudaPointerAttributes attributes{};
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, At(kSecondBase + 8)), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
  EXPECT_EQ(attributes.device, 1);
  ASSERT_EQ(cudaFree(At(kSecondBase)), cudaSuccess);
  EXPECT_TRUE(first_.freed.empty());
  EXPECT_EQ(second_.freed, std::vector<std::uint64_t>{kSecondBase});
}

TEST_F(DevicesClientTest, FreeingWaitsForEveryDevice) {
  ASSERT_EQ(cudaFree(At(kFirstBase)), cudaSuccess);
  EXPECT_EQ(first_.sent.back().call_id, wire::DeviceSynchronize::kCallId);
  EXPECT_EQ(second_.sent.back().call_id, wire::DeviceSynchronize::kCallId);
}

TEST_F(DevicesClientTest, ACopyThatIsWaitedForIsMadeByTheMemorysDevice) {
  int value = 7;
  ASSERT_EQ(cudaMemcpy(At(kSecondBase), &value, sizeof value, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_TRUE(first_.sent.empty());
  EXPECT_EQ(Last<wire::MemcpyHtoD>(second_).dst, kSecondBase);
}

TEST_F(DevicesClientTest, ACopyBetweenDevicesComesBehindTheWorkOfBoth) {
  ASSERT_EQ(cudaMemcpyPeer(At(kSecondBase), 1, At(kFirstBase), 0, 64), cudaSuccess);
  ExpectBehindBoth(wire::MemcpyDtoD::kCallId);
}

TEST_F(DevicesClientTest, ACopyOfRowsBetweenDevicesComesBehindTheWorkOfBoth) {
  ASSERT_EQ(cudaMemcpy2D(At(kSecondBase), 64, At(kFirstBase), 64, 32, 4, cudaMemcpyDefault),
            cudaSuccess);
  ExpectBehindBoth(wire::Memcpy2D::kCallId);
}

TEST_F(DevicesClientTest, ACopyOfAVolumeBetweenDevicesComesBehindTheWorkOfBoth) {
  cudaMemcpy3DPeerParms volume{};
  volume.srcPtr = {At(kFirstBase), 64, 32, 4};
  volume.dstPtr = {At(kSecondBase), 64, 32, 4};
  volume.dstDevice = 1;
  volume.extent = {32, 4, 2};
  ASSERT_EQ(cudaMemcpy3DPeer(&volume), cudaSuccess);
  ExpectBehindBoth(wire::Memcpy3D::kCallId);
}

TEST_F(DevicesClientTest, AnArrayIsCopiedByItsOwnDevice) {
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  const cudaChannelFormatDesc texel{32, 0, 0, 0, cudaChannelFormatKindSigned};
  cudaArray_t array = nullptr;
  ASSERT_EQ(cudaMallocArray(&array, &texel, 8, 8), cudaSuccess);
  second_.sent.clear();
  const cudaStream_t stream = StreamOn(0);
  ASSERT_EQ(cudaMemcpy2DToArray(array, 0, 0, At(kFirstBase), 32, 32, 8, cudaMemcpyDefault),
            cudaSuccess);
  EXPECT_EQ(second_.Calls(),
            (std::vector<std::uint32_t>{wire::DeviceSynchronize::kCallId, wire::Memcpy3D::kCallId,
                                        wire::StreamSynchronize::kCallId}));
  EXPECT_EQ(
      cudaMemcpy2DToArrayAsync(array, 0, 0, At(kFirstBase), 32, 32, 8, cudaMemcpyDefault, stream),
      cudaErrorNotSupported);
  EXPECT_EQ(first_.warnings, std::vector<std::string>{"array of another device"});
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(cudaFreeArray(array), cudaSuccess);
}

TEST_F(DevicesClientTest, GpusThatDoNotReachEachOtherSaySo) {
  first_.hello.has_peer_access = second_.hello.has_peer_access = false;
  int can = -1;
  EXPECT_EQ(cudaDeviceCanAccessPeer(&can, 0, 1), cudaSuccess);
  EXPECT_EQ(can, 0);
  EXPECT_EQ(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessUnsupported);
  EXPECT_EQ(cudaMemcpyPeer(At(kSecondBase), 1, At(kFirstBase), 0, 64), cudaErrorNotSupported);
}

TEST_F(DevicesClientTest, PeerAccessIsEnabledOnceForEachDirection) {
  int can = -1;
  EXPECT_EQ(cudaDeviceCanAccessPeer(&can, 1, 0), cudaSuccess);
  EXPECT_EQ(can, 1);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  EXPECT_EQ(cudaDeviceEnablePeerAccess(0, 0), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaDeviceEnablePeerAccess(1, 0), cudaSuccess);
  EXPECT_EQ(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessAlreadyEnabled);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  EXPECT_EQ(cudaDeviceDisablePeerAccess(0), cudaErrorPeerAccessNotEnabled);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  EXPECT_EQ(cudaDeviceDisablePeerAccess(1), cudaSuccess);
}

TEST_F(DevicesClientTest, EachDeviceHasPoolsOfItsOwn) {
  cudaMemPool_t one = nullptr;
  cudaMemPool_t other = nullptr;
  ASSERT_EQ(cudaDeviceGetDefaultMemPool(&one, 0), cudaSuccess);
  ASSERT_EQ(cudaDeviceGetDefaultMemPool(&other, 1), cudaSuccess);
  EXPECT_NE(one, other);
  EXPECT_EQ(cudaDeviceSetMemPool(0, other), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemPoolTrimTo(other, 0), cudaSuccess);
}

TEST_F(DevicesClientTest, WhatAnotherDeviceDoesDisturbsNoCapture) {
  const cudaStream_t stream = StreamOn(0);
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), cudaSuccess);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  EXPECT_EQ(cudaMemsetAsync(At(kSecondBase), 1, 16, nullptr), cudaSuccess);
  EXPECT_EQ(cudaDeviceReset(), cudaSuccess);
  EXPECT_EQ(second_.freed_all, 1);
  EXPECT_EQ(first_.freed_all, 0);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST_F(DevicesClientTest, AResetForgetsTheGraphMemoryOfItsDeviceOnly) {
  cudaMemAllocNodeParams parameters{};
  parameters.poolProps.allocType = cudaMemAllocationTypePinned;
  parameters.poolProps.location = {cudaMemLocationTypeDevice, {0}};
  parameters.bytesize = 256;
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaGraphCreate(&graph, 0), cudaSuccess);
  cudaGraphNode_t node = nullptr;
  ASSERT_EQ(cudaGraphAddMemAllocNode(&node, graph, nullptr, 0, &parameters), cudaSuccess);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  ASSERT_EQ(cudaDeviceReset(), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(first_.freed,
            std::vector<std::uint64_t>{reinterpret_cast<std::uint64_t>(parameters.dptr)});
  EXPECT_TRUE(second_.freed.empty());
}

}  // namespace
}  // namespace torpor::shim
