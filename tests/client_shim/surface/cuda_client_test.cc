#include <cuda.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <thread>

#include "client_shim/cuda/entry.h"
#include "proto/cuda_api/cudart_commands.h"
#include "tests/client_shim/surface/fake_client_core.h"

extern "C" torpor::shim::ClientCore* torpor_client_core() {
  return &torpor::shim::FakeClientCore::Get();
}

namespace torpor::shim {
namespace {

constexpr std::uint64_t kDevice = 0x2000'0000'0000;
constexpr std::uint64_t kRangeBytes = 1 << 20;

class CudaClientTest : public testing::Test {
 protected:
  void SetUp() override {
    core_.Forget();
    core_.hello.device_base = kDevice;
    core_.hello.device_bytes = kRangeBytes;
    wire::DeviceDescription device;
    device.name = "Fake GPU";
    device.attributes.assign(CU_DEVICE_ATTRIBUTE_MAX, 1024);
    core_.hello.devices = {device};
    core_.allocations = {{kDevice, 4096, true}};
    ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
  }
  // Ends with what the threads of a program begin with: no context.
  void TearDown() override {
    EXPECT_EQ(cuCtxSetCurrent(nullptr), CUDA_SUCCESS);
    while (cuDevicePrimaryCtxRelease(0) == CUDA_SUCCESS) {
    }
  }

  void UsePrimary() {
    CUcontext context = nullptr;
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
  }

  FakeClientCore& core_ = FakeClientCore::Get();
};

TEST_F(CudaClientTest, ErrorsOfTheRuntimeAreToldInTheDriversWords) {
  EXPECT_EQ(ToCuResult(cudaErrorInvalidDeviceFunction), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(ToCuResult(cudaErrorInvalidSymbol), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(ToCuResult(cudaErrorInvalidConfiguration), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(ToCuResult(cudaErrorNoDevice), CUDA_ERROR_NO_DEVICE);
  EXPECT_EQ(ToCuResult(cudaErrorIllegalAddress), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(ToCuResult(cudaErrorNotReady), CUDA_ERROR_NOT_READY);
}

// Of programs that use the driver API only: ctest gives every case a process of its own.
TEST_F(CudaClientTest, AThreadsEndIsNoUseOfTheRuntime) {
  ASSERT_FALSE(Seam().process_uses_runtime());
  core_.per_thread_stream = FakeClientCore::kPerThreadStream + 1;
  CUcontext primary = nullptr;
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&primary, 0), CUDA_SUCCESS);
  std::thread([primary] {
    EXPECT_EQ(cuCtxSetCurrent(primary), CUDA_SUCCESS);
    EXPECT_EQ(cuMemsetD8Async(kDevice, 0, 1, CU_STREAM_PER_THREAD), CUDA_SUCCESS);
  }).join();
  EXPECT_FALSE(Seam().process_uses_runtime());
}

TEST_F(CudaClientTest, ReservedAddressesBelongToNoContext) {
  ASSERT_FALSE(Seam().process_uses_runtime());
  constexpr std::size_t kReserved = std::size_t{2} << 20;
  CUcontext context = nullptr;
  ASSERT_EQ(cuCtxCreate(&context, nullptr, 0, 0), CUDA_SUCCESS);
  CUdeviceptr address = 0;
  ASSERT_EQ(cuMemAddressReserve(&address, kReserved, 0, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxDestroy(context), CUDA_SUCCESS);
  EXPECT_EQ(core_.freed_all, 0);
  UsePrimary();
  EXPECT_EQ(cuMemAddressFree(address, kReserved), CUDA_SUCCESS);
  ASSERT_EQ(cuMemAddressReserve(&address, kReserved, 0, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuDevicePrimaryCtxReset(0), CUDA_SUCCESS);
  EXPECT_EQ(core_.freed_all, 1);
  EXPECT_EQ(cuMemAddressFree(address, kReserved), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(CudaClientTest, AThreadWithoutContextIsRefused) {
  std::thread([] {
    CUcontext current = reinterpret_cast<CUcontext>(1);
    EXPECT_EQ(cuCtxGetCurrent(&current), CUDA_SUCCESS);
    EXPECT_EQ(current, nullptr);
    EXPECT_EQ(cuMemsetD8(kDevice, 0, 1), CUDA_ERROR_INVALID_CONTEXT);
  }).join();
  EXPECT_TRUE(core_.sent.empty());
}

TEST_F(CudaClientTest, AThreadThatUsesTheRuntimeHasThePrimaryContext) {
  std::thread([] {
    int device = -1;
    EXPECT_EQ(cudaGetDevice(&device), cudaSuccess);
    CUcontext current = nullptr;
    EXPECT_EQ(cuCtxGetCurrent(&current), CUDA_SUCCESS);
    EXPECT_NE(current, nullptr);
    EXPECT_EQ(cuMemsetD8(kDevice, 0, 1), CUDA_SUCCESS);
  }).join();
}

TEST_F(CudaClientTest, ContextsAreAStackOfTheThread) {
  CUcontext first = nullptr;
  CUcontext second = nullptr;
  CUcontext current = nullptr;
  ASSERT_EQ(cuCtxCreate(&first, nullptr, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxCreate(&second, nullptr, 0, 0), CUDA_SUCCESS);
  EXPECT_NE(first, second);
  EXPECT_EQ(cuCtxPopCurrent(&current), CUDA_SUCCESS);
  EXPECT_EQ(current, second);
  EXPECT_EQ(cuCtxGetCurrent(&current), CUDA_SUCCESS);
  EXPECT_EQ(current, first);
  // Another thread destroys what is current here.
  std::thread([first] { EXPECT_EQ(cuCtxDestroy(first), CUDA_SUCCESS); }).join();
  EXPECT_EQ(cuMemsetD8(kDevice, 0, 1), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  EXPECT_EQ(cuCtxSetCurrent(first), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(cuCtxSetCurrent(second), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxDestroy(second), CUDA_SUCCESS);
}

TEST_F(CudaClientTest, ThePrimaryContextIsHeldAndReleased) {
  UsePrimary();
  unsigned flags = 0;
  int active = 0;
  EXPECT_EQ(cuDevicePrimaryCtxGetState(0, &flags, &active), CUDA_SUCCESS);
  EXPECT_EQ(active, 1);
  CUcontext current = nullptr;
  ASSERT_EQ(cuCtxGetCurrent(&current), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxDestroy(current), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(cuDevicePrimaryCtxRelease(0), CUDA_SUCCESS);
  EXPECT_EQ(cuDevicePrimaryCtxRelease(0), CUDA_ERROR_INVALID_CONTEXT);
}

TEST_F(CudaClientTest, ElementsOfAnySizeAreSet) {
  UsePrimary();
  ASSERT_EQ(cuMemsetD32(kDevice + 8, 0xdeadbeef, 5), CUDA_SUCCESS);
  const auto memset = core_.Only<wire::Memset>();
  EXPECT_EQ(memset.dst, kDevice + 8);
  EXPECT_EQ(memset.value, 0xdeadbeefu);
  EXPECT_EQ(memset.element_bytes, 4u);
  EXPECT_EQ(memset.count, 5u);
  EXPECT_EQ(cuMemsetD16(kDevice + 1, 0, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemsetD16(kDevice + 4094, 0, 2), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(CudaClientTest, ThePerThreadVariantNamesTheThreadsStream) {
  UsePrimary();
  void* function = nullptr;
  ASSERT_EQ(cuGetProcAddress("cuMemsetD8", &function, 13000,
                             CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, nullptr),
            CUDA_SUCCESS);
  ASSERT_EQ(reinterpret_cast<decltype(&cuMemsetD8)>(function)(kDevice, 1, 1), CUDA_SUCCESS);
  EXPECT_EQ(core_.Only<wire::Memset>().stream, FakeClientCore::kPerThreadStream);
}

TEST_F(CudaClientTest, AFunctionIsFoundByTheVersionThatItCameWith) {
  void* old_form = nullptr;
  void* new_form = nullptr;
  CUdriverProcAddressQueryResult status{};
  EXPECT_EQ(cuGetProcAddress("cuCtxCreate", &old_form, 4000, 0, &status), CUDA_SUCCESS);
  EXPECT_EQ(cuGetProcAddress("cuCtxCreate", &new_form, 13000, 0, &status), CUDA_SUCCESS);
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SUCCESS);
  EXPECT_NE(old_form, new_form);
  EXPECT_EQ(cuGetProcAddress("cuCtxGetDevice_", &new_form, 13000, 0, nullptr),
            CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(cuGetProcAddress("cuLaunchKernelEx", &new_form, 9000, 0, &status), CUDA_SUCCESS);
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
}

TEST_F(CudaClientTest, TheRuntimesLastErrorStaysAsItWas) {
  UsePrimary();
  (void)cudaGetLastError();
  EXPECT_EQ(cuMemFree(1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST_F(CudaClientTest, WhatHasNoLineSaysSo) {
  EXPECT_EQ(cuDeviceGetLuid(nullptr, nullptr, 0), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(core_.warnings, std::vector<std::string>{"cuDeviceGetLuid"});
  const CUuuid id{};
  const void* table = &id;
  EXPECT_EQ(cuGetExportTable(&table, &id), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(table, nullptr);
}

TEST_F(CudaClientTest, AttributesAreTheRuntimesButForWhatThisApiLacks) {
  const std::set<CUdevice_attribute> withheld = {
      CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED,
      CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED,
      CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED,
      CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED,
      CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY,
      CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS};
  for (int number = 1; number < std::min<int>(CU_DEVICE_ATTRIBUTE_MAX, cudaDevAttrMax); ++number) {
    const auto attribute = static_cast<CUdevice_attribute>(number);
    int told = -1;
    ASSERT_EQ(cuDeviceGetAttribute(&told, attribute, 0), CUDA_SUCCESS);
    int expected = 0;
    if (!withheld.contains(attribute)) {
      ASSERT_EQ(cudaDeviceGetAttribute(&expected, static_cast<cudaDeviceAttr>(number), 0),
                cudaSuccess);
    }
    EXPECT_EQ(told, expected) << number;
  }
  int value = -1;
  ASSERT_EQ(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, 0),
            CUDA_SUCCESS);
  EXPECT_EQ(value, 0);
  ASSERT_EQ(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 0),
            CUDA_SUCCESS);
  EXPECT_EQ(value, 1);
}

// A module of one kernel (char, double).
class CudaModuleTest : public CudaClientTest {
 protected:
  void SetUp() override {
    CudaClientTest::SetUp();
    UsePrimary();
    wire::ModuleLoadResult loaded;
    loaded.found = 1;
    wire::KernelEntry& kernel = loaded.kernels.emplace_back();
    kernel.name = "kernel";
    kernel.parameters = {{0, 1}, {8, 8}};
    core_.reply.result = wire::Encoded(loaded);
    ASSERT_EQ(cuModuleLoadData(&module_, ".version 8.0"), CUDA_SUCCESS);
    ASSERT_EQ(cuModuleGetFunction(&function_, module_, "kernel"), CUDA_SUCCESS);
  }
  void TearDown() override {
    core_.reply = {};
    EXPECT_EQ(cuModuleUnload(module_), CUDA_SUCCESS);
    CudaClientTest::TearDown();
  }
  CUresult Launch(void** parameters, void** extra) {
    core_.sent.clear();
    return cuLaunchKernel(function_, 1, 2, 3, 4, 1, 1, 0, nullptr, parameters, extra);
  }

  CUmodule module_ = nullptr;
  CUfunction function_ = nullptr;
};

TEST_F(CudaModuleTest, TheTextTravelsWithItsEnd) {
  wire::ModuleLoad load;
  wire::Reader reader(core_.sent.front().fields);
  reader(load);
  ASSERT_TRUE(reader.done());
  EXPECT_EQ(load.finds_variables, 1u);
  CUfunction none = nullptr;
  EXPECT_EQ(cuModuleGetFunction(&none, module_, "other"), CUDA_ERROR_NOT_FOUND);
  CUmodule same = nullptr;
  EXPECT_EQ(cuFuncGetModule(&same, function_), CUDA_SUCCESS);
  EXPECT_EQ(same, module_);
}

TEST_F(CudaModuleTest, ArgumentsComeByPointerOrPacked) {
  struct {
    char letter = 'x';
    double number = 2.5;
  } packed;
  void* pointers[] = {&packed.letter, &packed.number};
  ASSERT_EQ(Launch(pointers, nullptr), CUDA_SUCCESS);
  const std::vector<std::uint8_t> by_pointer = core_.sent.front().fields;
  EXPECT_EQ(core_.Only<wire::LaunchKernel>().grid, (std::array<std::uint32_t, 3>{1, 2, 3}));

  std::size_t bytes = sizeof packed;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_BUFFER_POINTER, &packed,
                   CU_LAUNCH_PARAM_END};
  ASSERT_EQ(Launch(nullptr, extra), CUDA_SUCCESS);
  EXPECT_EQ(core_.sent.front().fields, by_pointer);
  EXPECT_EQ(Launch(pointers, extra), CUDA_ERROR_INVALID_VALUE);
  bytes = 12;
  EXPECT_EQ(Launch(nullptr, extra), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(CudaModuleTest, AnUnloadedModuleAndItsFunctionsAreNoHandles) {
  CUmodule other = nullptr;
  CUfunction function = nullptr;
  ASSERT_EQ(cuModuleLoadData(&other, ".version 8.0"), CUDA_SUCCESS);
  ASSERT_EQ(cuModuleGetFunction(&function, other, "kernel"), CUDA_SUCCESS);
  ASSERT_EQ(cuModuleUnload(other), CUDA_SUCCESS);
  EXPECT_EQ(cuModuleUnload(other), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuModuleGetFunction(&function, other, "kernel"), CUDA_ERROR_INVALID_HANDLE);
  int value = 0;
  EXPECT_EQ(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, function),
            CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(CudaModuleTest, AnErrorOfTheCompilerIsInTheLog) {
  core_.reply.status = cudaErrorInvalidPtx;
  core_.reply.message = "line 1: nonsense";
  core_.reply.result.clear();
  std::array<char, 8> log{};
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log.data(), reinterpret_cast<void*>(log.size())};
  CUmodule other = nullptr;
  EXPECT_EQ(cuModuleLoadDataEx(&other, "nonsense", 2, options, values), CUDA_ERROR_INVALID_PTX);
  EXPECT_STREQ(log.data(), "line 1:");
  EXPECT_EQ(values[1], reinterpret_cast<void*>(7));
}

}  // namespace
}  // namespace torpor::shim
