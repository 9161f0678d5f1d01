#include <cuda.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "base/sha256.h"
#include "proto/cuda_api/cudart_commands.h"
#include "proto/wire/relocatable_module.h"
#include "tests/client_shim/cudart/program_module.h"
#include "tests/client_shim/surface/fake_client_core.h"
#include "tests/client_shim/surface/fake_device.h"

extern "C" torpor::shim::ClientCore* torpor_client_core() {
  return &torpor::shim::FakeClientCore::Current();
}

namespace torpor::shim {
namespace {

class CudartClientTest : public testing::Test {
 protected:
  void SetUp() override {
    core_.Forget();
    core_.hello = OneDevice();
    core_.allocations = {{kDevice, kBytes, true}, {kHost, kBytes, false}};
    (void)cudaGetLastError();
  }

  FakeClientCore& core_ = FakeClientCore::Get();
};

// What nvcc's host code does for one kernel (char, double, short[3]) and an unused fatbin.
class LaunchTest : public CudartClientTest {
 protected:
  void SetUp() override {
    CudartClientTest::SetUp();
    static const bool registered = Register();
    ASSERT_TRUE(registered);
    wire::ModuleLoadResult loaded;
    loaded.found = 1;
    wire::KernelEntry& kernel = loaded.kernels.emplace_back();
    kernel.name = "kernel";
    kernel.parameters = {{0, 1}, {8, 8}, {16, 6}};
    kernel.max_threads = 256;
    core_.reply.result = wire::Encoded(loaded);
  }
  static bool Register() {
    static constexpr FatbinWrapper kWrapper;
    void** const handle = RegisterModule(kWrapper);
    RegisterKernel(handle, &kHostFunction, "kernel");
    __cudaRegisterVar(handle, host_variable, nullptr, "variable", 0, sizeof host_variable, 0, 0);
    __cudaRegisterFatBinaryEnd(handle);
    return handle != nullptr;
  }
  cudaError_t Launch(dim3 grid, dim3 block, std::size_t shared_bytes = 0) {
    char tag = 'x';
    double weight = 2.5;
    std::array<short, 3> steps = {1, 2, 3};
    std::array<void*, 3> arguments = {&tag, &weight, steps.data()};
    return cudaLaunchKernel(&kHostFunction, grid, block, arguments.data(), shared_bytes, nullptr);
  }

  static constexpr char kHostFunction = 0;
  static inline char host_variable[8];
};

TEST_F(LaunchTest, ParametersArePackedAsTheModuleSays) {
  ASSERT_EQ(Launch({2, 3, 4}, {8, 4, 2}, 100), cudaSuccess);
  wire::LaunchKernel launch;
  wire::Reader reader(core_.sent.back().fields);
  reader(launch);
  ASSERT_TRUE(reader.done());
  EXPECT_EQ(core_.sent.back().call_id, wire::LaunchKernel::kCallId);
  EXPECT_EQ(launch.grid, (std::array<std::uint32_t, 3>{2, 3, 4}));
  EXPECT_EQ(launch.block, (std::array<std::uint32_t, 3>{8, 4, 2}));
  EXPECT_EQ(launch.shared_bytes, 100u);
  ASSERT_EQ(launch.parameters.size(), 22u);
  double weight = 0;
  std::array<short, 3> steps{};
  std::memcpy(&weight, launch.parameters.data() + 8, sizeof weight);
  std::memcpy(steps.data(), launch.parameters.data() + 16, sizeof steps);
  EXPECT_EQ(launch.parameters[0], 'x');
  EXPECT_EQ(launch.parameters[1], 0);
  EXPECT_EQ(weight, 2.5);
  EXPECT_EQ(steps, (std::array<short, 3>{1, 2, 3}));
}

// As pageable memory it would be read before what comes earlier in the stream has written it.
TEST_F(LaunchTest, PinnedMemoryIsCopiedToAVariableInStreamOrder) {
  ASSERT_EQ(cudaMemcpyToSymbolAsync(host_variable, At(kHost + 64), 4, 2, cudaMemcpyHostToDevice),
            cudaSuccess);
  const auto copy = FakeClientCore::Decode<wire::MemcpyToSymbol>(core_.sent.back());
  EXPECT_EQ(copy.variable, "variable");
  EXPECT_EQ(copy.variable_offset, 2u);
  EXPECT_EQ(copy.bytes, 4u);
  EXPECT_EQ(copy.payload, wire::Payload::kArena);
  EXPECT_EQ(copy.offset, 64u);
  EXPECT_EQ(copy.device_source, 0u);
  core_.sent.clear();
  ASSERT_EQ(cudaMemcpyToSymbol(host_variable, At(kHost + 64), 4), cudaSuccess);
  EXPECT_EQ(core_.Calls(), (std::vector<std::uint32_t>{wire::MemcpyToSymbol::kCallId,
                                                       wire::StreamSynchronize::kCallId}));
  EXPECT_EQ(cudaMemcpyToSymbol(host_variable, At(kHost), 4, 5), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyToSymbol(host_variable, At(kHost), 4, 0, cudaMemcpyDeviceToHost),
            cudaErrorInvalidMemcpyDirection);
}

TEST_F(LaunchTest, AModuleIsLoadedOnce) {
  ASSERT_EQ(Launch({1, 1, 1}, {1, 1, 1}), cudaSuccess);
  core_.sent.clear();
  ASSERT_EQ(Launch({1, 1, 1}, {1, 1, 1}), cudaSuccess);
  EXPECT_EQ(core_.sent.size(), 1u);
}

TEST_F(LaunchTest, RelocatableDeviceCodeIsOneModuleOfItsParts) {
  static constexpr std::array<std::uint8_t, 24> kPart = {0x50, 0xED, 0x55, 0xBA, 1, 0, 16, 0, 8};
  static constexpr std::array<const void*, 3> kParts = {kPart.data(), kEmptyFatbin.data(), nullptr};
  static constexpr FatbinWrapper kWrapper = {.version = 2, .relocatable = kParts.data()};
  static constexpr char kFunction = 0;
  RegisterKernel(RegisterModule(kWrapper), &kFunction, "kernel");
  cudaFuncAttributes attributes{};
  (void)cudaFuncGetAttributes(&attributes, &kFunction);
  ASSERT_FALSE(core_.sent.empty());
  wire::ModuleLoad load;
  wire::Reader reader(core_.sent.front().fields);
  reader(load);
  ASSERT_TRUE(reader.done());
  wire::RelocatableModule module;
  module.linked = kEmptyFatbin;
  module.parts = {kPart, kEmptyFatbin};
  const std::vector<std::uint8_t> image = wire::Encoded(module);
  EXPECT_EQ(load.hash, Sha256(image.data(), image.size()));
}

TEST_F(LaunchTest, WhatIsWrongWithALaunchIsToldAtOnce) {
  ASSERT_EQ(Launch({1, 1, 1}, {1, 1, 1}), cudaSuccess);
  core_.sent.clear();
  EXPECT_EQ(Launch({0, 1, 1}, {1, 1, 1}), cudaErrorInvalidConfiguration);
  EXPECT_EQ(Launch({1, 70'000, 1}, {1, 1, 1}), cudaErrorInvalidConfiguration);
  EXPECT_EQ(Launch({1, 1, 1}, {1024, 2, 1}), cudaErrorInvalidConfiguration);
  EXPECT_EQ(Launch({1, 1, 1}, {512, 1, 1}), cudaErrorLaunchOutOfResources);
  EXPECT_EQ(Launch({1, 1, 1}, {1, 1, 1}, 1 << 20), cudaErrorInvalidValue);
  EXPECT_EQ(cudaLaunchKernel(&core_, {1, 1, 1}, {1, 1, 1}, nullptr, 0, nullptr),
            cudaErrorInvalidDeviceFunction);
  EXPECT_TRUE(core_.sent.empty());
}

TEST_F(LaunchTest, LaunchesOfNvccsCodeTellABadConfigurationAsTheDriverDoes) {
  ASSERT_EQ(Launch({1, 1, 1}, {1, 1, 1}), cudaSuccess);
  cudaKernel_t kernel = nullptr;
  ASSERT_EQ(__cudaGetKernel(&kernel, &kHostFunction), cudaSuccess);
  const auto launch = [&](dim3 grid, dim3 block) {
    return __cudaLaunchKernel(kernel, grid, block, nullptr, 0, nullptr);
  };
  EXPECT_EQ(launch({1, 1, 1}, {1024, 2, 1}), cudaErrorInvalidValue);
  EXPECT_EQ(launch({0, 1, 1}, {1, 1, 1}), cudaErrorInvalidValue);
  EXPECT_EQ(launch({1, 1, 1}, {512, 1, 1}), cudaErrorLaunchOutOfResources);
}

TEST_F(LaunchTest, OccupancyIsRememberedUntilAnAttributeIsSet) {
  ASSERT_EQ(Launch({1, 1, 1}, {1, 1, 1}), cudaSuccess);
  const auto occupancy = [] {
    int blocks = 0;
    EXPECT_EQ(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, &kHostFunction, 64, 0),
              cudaSuccess);
    return blocks;
  };
  const auto answer = [&](int blocks) {
    core_.reply.result = wire::Encoded(wire::OccupancyMaxActiveBlocksResult{blocks});
  };
  answer(4);
  EXPECT_EQ(occupancy(), 4);
  answer(2);
  EXPECT_EQ(occupancy(), 4);
  ASSERT_EQ(
      cudaFuncSetAttribute(&kHostFunction, cudaFuncAttributePreferredSharedMemoryCarveout, 100),
      cudaSuccess);
  EXPECT_EQ(occupancy(), 2);
}

TEST_F(LaunchTest, ADestroyedStreamCannotBeUsed) {
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  ASSERT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaMemsetAsync(At(kDevice), 0, 4, stream), cudaErrorInvalidResourceHandle);
}

TEST_F(CudartClientTest, TheLastErrorIsForgottenWhenItIsTaken) {
  EXPECT_EQ(cudaSetDevice(5), cudaErrorInvalidDevice);
  int device = -1;
  EXPECT_EQ(cudaGetDevice(&device), cudaSuccess);
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST_F(CudartClientTest, AfterAStickyErrorTheDevicesCanStillBeAskedAbout) {
  core_.failure = cudaErrorAssert;
  core_.failed_when_open = true;
  int value = -1;
  EXPECT_EQ(cudaGetDevice(&value), cudaSuccess);
  EXPECT_EQ(value, 0);
  EXPECT_EQ(cudaGetDeviceCount(&value), cudaSuccess);
  EXPECT_EQ(value, 1);
  EXPECT_EQ(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 0), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorAssert);
}

TEST_F(CudartClientTest, InAForkedChildTheyCannot) {
  core_.failure = cudaErrorInitializationError;
  core_.failed_when_open = true;
  int value = -1;
  EXPECT_EQ(cudaGetDevice(&value), cudaErrorInitializationError);
}

TEST_F(CudartClientTest, WithoutASessionEveryCallTellsWhy) {
  core_.failure = cudaErrorNoDevice;
  void* pointer = nullptr;
  int count = -1;
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaErrorNoDevice);
  EXPECT_EQ(count, 0);
  EXPECT_EQ(cudaMalloc(&pointer, 1), cudaErrorNoDevice);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorNoDevice);
  EXPECT_EQ(cudaGetLastError(), cudaErrorNoDevice);
}

TEST_F(CudartClientTest, ASmallUploadTravelsInsideItsCommand) {
  const std::array<std::uint8_t, 3> bytes = {7, 8, 9};
  ASSERT_EQ(cudaMemcpy(At(kDevice + 16), bytes.data(), bytes.size(), cudaMemcpyHostToDevice),
            cudaSuccess);
  const auto copy = core_.Only<wire::MemcpyHtoD>();
  EXPECT_EQ(copy.dst, kDevice + 16);
  EXPECT_EQ(copy.payload, wire::Payload::kInline);
  EXPECT_EQ(std::vector<std::uint8_t>(copy.data.begin(), copy.data.end()),
            (std::vector<std::uint8_t>{7, 8, 9}));
}

TEST_F(CudartClientTest, PinnedMemoryIsNamedByItsPlaceInTheArena) {
  ASSERT_EQ(cudaMemcpyAsync(At(kDevice), At(kHost + 64), 128, cudaMemcpyDefault, nullptr),
            cudaSuccess);
  const auto upload = core_.Only<wire::MemcpyHtoD>();
  EXPECT_EQ(upload.payload, wire::Payload::kArena);
  EXPECT_EQ(upload.offset, 64u);
  core_.sent.clear();
  ASSERT_EQ(cudaMemcpyAsync(At(kHost + 8), At(kDevice + 8), 16, cudaMemcpyDeviceToHost, nullptr),
            cudaSuccess);
  EXPECT_EQ(core_.Only<wire::MemcpyDtoHArena>().arena_offset, 8u);
}

// Longer than what travels inside a command, and in more than one piece.
TEST_F(CudartClientTest, ALargeUploadTravelsThroughTheWindow) {
  core_.allocations = {{kDevice, kRangeBytes, true}};
  const std::vector<std::uint8_t> bytes(core_.window.size() + 5000, 7);
  ASSERT_EQ(
      cudaMemcpyAsync(At(kDevice), bytes.data(), bytes.size(), cudaMemcpyHostToDevice, nullptr),
      cudaSuccess);
  ASSERT_EQ(core_.sent.size(), 2u);
  const auto first = FakeClientCore::Decode<wire::MemcpyHtoD>(core_.sent[0]);
  EXPECT_EQ(first.payload, wire::Payload::kWindow);
  EXPECT_EQ(first.bytes, core_.window.size());
  const auto second = FakeClientCore::Decode<wire::MemcpyHtoD>(core_.sent[1]);
  EXPECT_EQ(second.dst, kDevice + core_.window.size());
  EXPECT_EQ(second.bytes, 5000u);
  EXPECT_EQ(core_.window[0], 7);
}

// By way of pinned memory that is freed again.
TEST_F(CudartClientTest, RowsOfPageableMemoryArePackedAndAwaited) {
  const std::vector<std::uint8_t> rows(100, 1);
  ASSERT_EQ(
      cudaMemcpy2DAsync(At(kDevice), 32, rows.data(), 25, 20, 4, cudaMemcpyHostToDevice, nullptr),
      cudaSuccess);
  EXPECT_EQ(core_.Calls(), (std::vector<std::uint32_t>{wire::Memcpy3D::kCallId,
                                                       wire::StreamSynchronize::kCallId}));
  const auto copy = FakeClientCore::Decode<wire::Memcpy3D>(core_.sent.front());
  EXPECT_EQ(copy.dst_pitch, 32u);
  EXPECT_EQ(copy.src_pitch, 20u);
  EXPECT_EQ(core_.freed, std::vector<std::uint64_t>{copy.src});
}

TEST_F(CudartClientTest, ACopyMustFitItsAllocationsAndItsKind) {
  std::array<char, 64> host{};
  EXPECT_EQ(cudaMemcpy(At(kDevice + kBytes - 8), host.data(), 64, cudaMemcpyHostToDevice),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(At(kDevice + kBytes), host.data(), 1, cudaMemcpyHostToDevice),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(host.data(), host.data(), 8, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(At(kDevice), host.data(), 8, static_cast<cudaMemcpyKind>(7)),
            cudaErrorInvalidMemcpyDirection);
  EXPECT_EQ(cudaMemcpy(At(kDevice), host.data(), 0, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_TRUE(core_.sent.empty());
}

TEST_F(CudartClientTest, APointersKindIsKnownWithoutAsking) {
  const auto describe = [](const void* pointer) {
    cudaPointerAttributes attributes;
    EXPECT_EQ(cudaPointerGetAttributes(&attributes, pointer), cudaSuccess);
    return attributes;
  };
  EXPECT_EQ(describe(At(kDevice + 100)).type, cudaMemoryTypeDevice);
  EXPECT_EQ(describe(At(kHost + 100)).type, cudaMemoryTypeHost);
  std::array<char, 16> local{};
  EXPECT_EQ(describe(local.data()).type, cudaMemoryTypeUnregistered);
  ASSERT_EQ(cudaHostRegister(local.data(), local.size(), cudaHostRegisterDefault), cudaSuccess);
  EXPECT_EQ(describe(local.data() + 15).type, cudaMemoryTypeHost);
  EXPECT_EQ(describe(local.data() + 15).hostPointer, local.data() + 15);
  ASSERT_EQ(cudaHostUnregister(local.data()), cudaSuccess);
  EXPECT_EQ(describe(local.data()).type, cudaMemoryTypeUnregistered);
  EXPECT_TRUE(core_.sent.empty());
}

TEST_F(CudartClientTest, TheDeviceIsTheOneThatTheDaemonTold) {
  cudaDeviceProp properties;
  ASSERT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
  EXPECT_STREQ(properties.name, "Fake GPU");
  EXPECT_EQ(properties.totalGlobalMem, kRangeBytes);
  EXPECT_EQ(properties.warpSize, 32);
  EXPECT_EQ(properties.major, 12);
  EXPECT_EQ(cudaGetDeviceProperties(&properties, 1), cudaErrorInvalidDevice);
  int device = -1;
  EXPECT_EQ(cudaDeviceGetByPCIBusId(&device, "0:a:0.0"), cudaSuccess);
  EXPECT_EQ(device, 0);
}

TEST_F(CudartClientTest, PureQueriesNeedNoDaemon) {
  core_.failure = cudaErrorNoDevice;
  const cudaChannelFormatDesc desc =
      cudaCreateChannelDesc(8, 8, 8, 8, cudaChannelFormatKindUnsigned);
  EXPECT_EQ(desc.w, 8);
  EXPECT_EQ(desc.f, cudaChannelFormatKindUnsigned);
  int version = 0;
  EXPECT_EQ(cudaRuntimeGetVersion(&version), cudaSuccess);
  EXPECT_EQ(version, CUDART_VERSION);
  EXPECT_STREQ(cudaGetErrorName(cudaErrorAssert), "cudaErrorAssert");
}

TEST_F(CudartClientTest, AttributesOfAStreamAreKept) {
  cudaStream_t stream = nullptr;
  cudaStream_t other = nullptr;
  ASSERT_EQ(cudaStreamCreateWithPriority(&stream, cudaStreamDefault, -1), cudaSuccess);
  ASSERT_EQ(cudaStreamCreate(&other), cudaSuccess);
  cudaStreamAttrValue value{};
  EXPECT_EQ(cudaStreamGetAttribute(stream, cudaStreamAttributePriority, &value), cudaSuccess);
  EXPECT_EQ(value.priority, -1);
  value = {};
  value.accessPolicyWindow.num_bytes = 4096;
  ASSERT_EQ(cudaStreamSetAttribute(stream, cudaStreamAttributeAccessPolicyWindow, &value),
            cudaSuccess);
  ASSERT_EQ(cudaStreamCopyAttributes(other, stream), cudaSuccess);
  value = {};
  ASSERT_EQ(cudaStreamGetAttribute(other, cudaStreamAttributeAccessPolicyWindow, &value),
            cudaSuccess);
  EXPECT_EQ(value.accessPolicyWindow.num_bytes, 4096u);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(other), cudaSuccess);
}

TEST_F(CudartClientTest, AnEventIsQueriedOnlyWhenItWasRecorded) {
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event), cudaSuccess);
  EXPECT_TRUE(core_.sent.empty());
  ASSERT_EQ(cudaEventRecord(event, nullptr), cudaSuccess);
  EXPECT_EQ(core_.Only<wire::EventRecord>().event, reinterpret_cast<std::uint64_t>(event));
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(event), cudaErrorInvalidResourceHandle);
}

TEST_F(CudartClientTest, WhatCouldNotBeSentIsNotAwaited) {
  core_.is_drained = false;
  core_.has_slots = true;
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  core_.send_failure = cudaErrorDevicesUnavailable;
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorDevicesUnavailable);
  EXPECT_EQ(cudaEventRecord(event, stream), cudaErrorDevicesUnavailable);
  core_.send_failure = cudaSuccess;
  EXPECT_EQ(cudaEventQuery(event), cudaSuccess) << "it was never recorded";
  EXPECT_EQ(cudaStreamQuery(stream), cudaSuccess);
  EXPECT_EQ(core_.Only<wire::StreamMark>().stream, reinterpret_cast<std::uint64_t>(stream));
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

// As PyTorch does it after each download.
TEST_F(CudartClientTest, ASynchronisationRightBehindADownloadAsksNobody) {
  core_.is_drained = false;
  core_.reply.result = wire::Encoded(wire::MemcpyDtoHResult{std::vector<std::uint8_t>(4)});
  int got = 0;
  ASSERT_EQ(cudaMemcpyAsync(&got, At(kDevice), 4, cudaMemcpyDeviceToHost, nullptr), cudaSuccess);
  const std::size_t sent = core_.sent.size();
  EXPECT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
  EXPECT_EQ(core_.sent.size(), sent);
  core_.reply.result.clear();
  ASSERT_EQ(cudaMemsetAsync(At(kDevice), 0, 4, nullptr), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
  EXPECT_EQ(core_.sent.back().call_id, wire::StreamSynchronize::kCallId);
}

// As PyTorch does it behind each input.
TEST_F(CudartClientTest, ASynchronisationRightBehindUploadsToAnIdleStreamIsNotWaitedFor) {
  core_.is_drained = false;
  const int value = 7;
  ASSERT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
  for (int input = 0; input < 2; ++input) {
    core_.sent.clear();
    ASSERT_EQ(cudaMemcpyAsync(At(kDevice), &value, sizeof value, cudaMemcpyHostToDevice, nullptr),
              cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
    EXPECT_EQ(core_.Calls(),
              (std::vector<std::uint32_t>{wire::MemcpyHtoD::kCallId, wire::StreamFence::kCallId}));
  }
  core_.sent.clear();
  EXPECT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
  EXPECT_TRUE(core_.sent.empty()) << "nothing came behind the fence";
}

TEST_F(CudartClientTest, ASynchronisationBehindUploadsAndOtherWorkIsWaitedFor) {
  core_.is_drained = false;
  const int value = 7;
  const auto upload = [&] {
    return cudaMemcpyAsync(At(kDevice), &value, sizeof value, cudaMemcpyHostToDevice, nullptr);
  };
  ASSERT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
  ASSERT_EQ(upload(), cudaSuccess);
  ASSERT_EQ(cudaMemsetAsync(At(kDevice), 0, 4, nullptr), cudaSuccess);
  ASSERT_EQ(upload(), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
  EXPECT_EQ(core_.sent.back().call_id, wire::StreamSynchronize::kCallId);
}

TEST_F(CudartClientTest, AnUploadIsWaitedForWhereAnotherStreamWasBusy) {
  core_.is_drained = false;
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaMemsetAsync(At(kDevice), 0, 4, stream), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
  const int value = 7;
  ASSERT_EQ(cudaMemcpyAsync(At(kDevice), &value, sizeof value, cudaMemcpyHostToDevice, stream),
            cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(core_.sent.back().call_id, wire::StreamSynchronize::kCallId);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST_F(CudartClientTest, AnUploadIsWaitedForWhereAnotherMaySeeIt) {
  core_.is_drained = false;
  core_.has_memory_alone = false;
  ASSERT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
  const int value = 7;
  ASSERT_EQ(cudaMemcpyAsync(At(kDevice), &value, sizeof value, cudaMemcpyHostToDevice, nullptr),
            cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
  EXPECT_EQ(core_.sent.back().call_id, wire::StreamSynchronize::kCallId);
}

// However long the executor takes to reach a mark.
TEST_F(CudartClientTest, AQueryRightBehindASynchronisationFindsTheStreamReady) {
  core_.is_drained = false;
  core_.has_slots = true;
  core_.slots_stall = true;
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  ASSERT_EQ(cudaMemsetAsync(At(kDevice), 0, 4, stream), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(stream), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(nullptr), cudaErrorNotReady) << "only the other stream is known";
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(stream), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(nullptr), cudaSuccess);
  ASSERT_EQ(cudaMemsetAsync(At(kDevice), 0, 4, stream), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST_F(CudartClientTest, AThreadsDefaultStreamGivesItsSlotBack) {
  core_.is_drained = false;
  core_.has_slots = true;
  std::thread([] { EXPECT_EQ(cudaStreamQuery(cudaStreamPerThread), cudaSuccess); }).join();
  EXPECT_EQ(core_.freed_slots, 1);
}

TEST_F(CudartClientTest, AnErrorOfEarlierWorkKeepsNoMemory) {
  core_.is_drained = false;
  core_.send_failure = cudaErrorDevicesUnavailable;
  EXPECT_EQ(cudaFree(At(kDevice)), cudaErrorDevicesUnavailable);
  core_.send_failure = cudaSuccess;
  core_.async_error = cudaErrorInvalidValue;
  EXPECT_EQ(cudaFreeHost(At(kHost)), cudaErrorInvalidValue);
  EXPECT_EQ(core_.freed, (std::vector<std::uint64_t>{kDevice, kHost}));
}

TEST_F(LaunchTest, AResetForgetsWhatTheProgramHad) {
  ASSERT_EQ(Launch({1, 1, 1}, {1, 1, 1}), cudaSuccess);
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  ASSERT_EQ(cudaDeviceReset(), cudaSuccess);
  EXPECT_TRUE(core_.live.empty());
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventSynchronize(event), cudaErrorInvalidResourceHandle);
  core_.sent.clear();
  ASSERT_EQ(Launch({1, 1, 1}, {1, 1, 1}), cudaSuccess);
  EXPECT_EQ(core_.sent.front().call_id, wire::ModuleLoad::kCallId);
}

}  // namespace
}  // namespace torpor::shim
