// A __managed__ variable and a kernel beside it, over a core that only takes notes.
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <thread>
#include <vector>

#include "proto/cuda_api/cudart_commands.h"
#include "tests/client_shim/cudart/program_module.h"
#include "tests/client_shim/surface/fake_client_core.h"
#include "tests/client_shim/surface/fake_device.h"

namespace torpor::shim {
namespace {

using ::testing::Contains;
using ::testing::Not;

constexpr auto kFetch = wire::MemcpyFromSymbol::kCallId;

// What nvcc's code keeps of the variable: the address of the program's copy, once there is one.
void* variable_pointer = nullptr;
constexpr std::size_t kVariableBytes = 64;
constexpr char kFunction = 0;

class ManagedVariablesTest : public testing::Test {
 protected:
  void SetUp() override {
    core_.Forget();
    core_.hello = OneDevice();
    wire::ModuleLoadResult loaded;
    loaded.found = 1;
    wire::KernelEntry& kernel = loaded.kernels.emplace_back();
    kernel.name = "kernel";
    core_.results[wire::ModuleLoad::kCallId] = wire::Encoded(loaded);
    wire::MemcpyFromSymbolResult fetched;
    const std::vector<std::uint8_t> bytes(kVariableBytes, 3);
    fetched.data = bytes;
    core_.results[kFetch] = wire::Encoded(fetched);
    static void** const module = Register();
    ASSERT_EQ(__cudaInitModule(module), 1);
    core_.allocations.push_back({kDevice, kBytes, true});
    core_.sent.clear();
  }
  // Without a copy, whose memory goes with the fake's, there is no variable for other tests.
  void TearDown() override {
    core_.before_enqueue = nullptr;
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    variable_pointer = nullptr;
  }
  static void** Register() {
    static constexpr FatbinWrapper kWrapper;
    void** const handle = RegisterModule(kWrapper);
    RegisterKernel(handle, &kFunction, "kernel");
    __cudaRegisterManagedVar(handle, &variable_pointer, nullptr, "variable", 0, kVariableBytes, 0,
                             0);
    return handle;
  }
  static cudaError_t Launch() {
    return cudaLaunchKernel(&kFunction, dim3(1), dim3(1), nullptr, 0, nullptr);
  }
  // A kernel may have changed the variable, and the program has not heard of it.
  void LaunchAndForget() {
    ASSERT_EQ(Launch(), cudaSuccess);
    core_.sent.clear();
  }

  FakeClientCore& core_ = FakeClientCore::Get();
};

TEST_F(ManagedVariablesTest, WhatKernelsWroteIsFetchedOnce) {
  LaunchAndForget();
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_THAT(core_.Calls(), Contains(kFetch));
  EXPECT_EQ(*static_cast<char*>(variable_pointer), 3);
  core_.sent.clear();
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_THAT(core_.Calls(), Not(Contains(kFetch)));
}

// Another thread synchronises between what comes before a launch and the launch itself.
TEST_F(ManagedVariablesTest, ASynchronisationBesideALaunchDoesNotHideIt) {
  std::thread other;
  core_.before_enqueue = [&other](std::uint32_t call_id) {
    if (call_id == wire::LaunchKernel::kCallId && !other.joinable())
      other = std::thread([] { EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess); });
  };
  ASSERT_EQ(Launch(), cudaSuccess);
  other.join();
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  const std::vector<std::uint32_t> calls = core_.Calls();
  const auto launch = std::find(calls.begin(), calls.end(), wire::LaunchKernel::kCallId);
  EXPECT_NE(std::find(launch, calls.end(), kFetch), calls.end());
}

TEST_F(ManagedVariablesTest, CopiesOfEveryShapeMeetTheNewestValue) {
  LaunchAndForget();
  ASSERT_EQ(
      cudaMemcpy2DAsync(At(kDevice), 32, variable_pointer, 16, 8, 4, cudaMemcpyDefault, nullptr),
      cudaSuccess);
  EXPECT_THAT(core_.Calls(), Contains(kFetch));
  EXPECT_EQ(core_.sent.back().call_id, wire::StreamSynchronize::kCallId);
  LaunchAndForget();
  cudaMemcpy3DParms volume{};
  volume.srcPtr = {At(kDevice), 16, 16, 2};
  volume.dstPtr = {variable_pointer, 8, 8, 2};
  volume.extent = {8, 2, 2};
  volume.kind = cudaMemcpyDefault;
  ASSERT_EQ(cudaMemcpy3DAsync(&volume, nullptr), cudaSuccess);
  EXPECT_THAT(core_.Calls(), Contains(kFetch));
  EXPECT_EQ(core_.sent.back().call_id, wire::StreamSynchronize::kCallId);
}

// As after any other synchronisation, whatever the copy was of.
TEST_F(ManagedVariablesTest, BlockingCopiesOfEveryShapeFetch) {
  std::vector<char> host(64);
  LaunchAndForget();
  ASSERT_EQ(cudaMemcpy2D(host.data(), 16, At(kDevice), 32, 8, 4, cudaMemcpyDefault), cudaSuccess);
  EXPECT_THAT(core_.Calls(), Contains(kFetch));
  LaunchAndForget();
  cudaMemcpy3DParms volume{};
  volume.srcPtr = {At(kDevice), 16, 16, 2};
  volume.dstPtr = {host.data(), 8, 8, 2};
  volume.extent = {8, 2, 2};
  volume.kind = cudaMemcpyDefault;
  ASSERT_EQ(cudaMemcpy3D(&volume), cudaSuccess);
  EXPECT_THAT(core_.Calls(), Contains(kFetch));
}

// nvcc's code passes the address of the program's copy.
TEST_F(ManagedVariablesTest, SymbolCallsAreAboutTheProgramsCopy) {
  void* address = nullptr;
  ASSERT_EQ(cudaGetSymbolAddress(&address, variable_pointer), cudaSuccess);
  EXPECT_EQ(address, variable_pointer);
  std::size_t bytes = 0;
  ASSERT_EQ(cudaGetSymbolSize(&bytes, variable_pointer), cudaSuccess);
  EXPECT_EQ(bytes, kVariableBytes);
  const char given[] = {5, 6};
  ASSERT_EQ(cudaMemcpyToSymbol(variable_pointer, given, 2, 8), cudaSuccess);
  EXPECT_EQ(static_cast<char*>(variable_pointer)[9], 6);
  char copied[2] = {};
  ASSERT_EQ(cudaMemcpyFromSymbol(copied, variable_pointer, 2, 8), cudaSuccess);
  EXPECT_EQ(copied[1], 6);
  EXPECT_EQ(cudaMemcpyToSymbol(variable_pointer, given, 2, kVariableBytes - 1),
            cudaErrorInvalidValue);
  core_.sent.clear();
  ASSERT_EQ(Launch(), cudaSuccess);
  EXPECT_EQ(core_.sent.front().call_id, wire::MemcpyToSymbol::kCallId) << "the GPU gets it";
}

TEST_F(ManagedVariablesTest, GraphsDoNotCopyOrFillThem) {
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaGraphCreate(&graph, 0), cudaSuccess);
  cudaGraphNode_t node = nullptr;
  EXPECT_EQ(cudaGraphAddMemcpyNode1D(&node, graph, nullptr, 0, variable_pointer, At(kDevice), 8,
                                     cudaMemcpyDefault),
            cudaErrorNotSupported);
  cudaMemsetParams fill{};
  fill.dst = variable_pointer;
  fill.elementSize = 1;
  fill.width = 8;
  fill.height = 1;
  ASSERT_EQ(cudaGraphAddMemsetNode(&node, graph, nullptr, 0, &fill), cudaSuccess);
  cudaGraphExec_t exec = nullptr;
  EXPECT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaErrorNotSupported);
  EXPECT_THAT(core_.warnings, Contains("graph variable"));
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

}  // namespace
}  // namespace torpor::shim
