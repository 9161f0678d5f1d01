#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <string>

#include "client_shim/nvml/nvml_api.h"
#include "client_shim/nvml/system.h"
#include "tests/client_shim/surface/fake_client_core.h"
#include "tests/client_shim/surface/fake_device.h"

extern "C" torpor::shim::ClientCore* torpor_client_core() {
  return &torpor::shim::FakeClientCore::Current();
}

// Has no line in the table, and no declaration.
extern "C" int nvmlDeviceGetTemperature();

namespace torpor::shim {
namespace {

// As programs are compiled to see them.
static_assert(sizeof(nvmlPciInfo_t) == 68);
static_assert(sizeof(nvmlMemory_t) == 24);
static_assert(sizeof(nvmlMemory_v2_t) == 40);
static_assert(kMemoryVersion2 == 0x2000028);
static_assert(sizeof(nvmlUtilization_t) == 8);
static_assert(sizeof(nvmlProcessInfo_v1_t) == 16);
static_assert(sizeof(nvmlProcessInfo_v2_t) == 24);

constexpr char kFirstUuid[] = "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f";

class NvmlClientTest : public testing::Test {
 protected:
  void SetUp() override {
    FakeClientCore::Second().Forget();
    core_.Forget();
    core_.hello = OneDevice();
    for (std::size_t i = 0; i < 16; ++i)
      core_.hello.devices[0].uuid[i] = static_cast<std::uint8_t>(i);
    core_.hello.devices.push_back(core_.hello.devices[0]);
    core_.hello.devices[1].uuid[0] = 0xff;
    core_.hello.devices[1].pci_bus_id = "0001:0b:02.0";
  }
  void TearDown() override {
    while (nvmlShutdown() == NVML_SUCCESS) {
    }
  }

  static nvmlDevice_t Device(unsigned index) {
    nvmlDevice_t device = nullptr;
    EXPECT_EQ(nvmlDeviceGetHandleByIndex_v2(index, &device), NVML_SUCCESS);
    return device;
  }

  FakeClientCore& core_ = FakeClientCore::Get();
};

TEST_F(NvmlClientTest, WithoutADaemonTheDriverIsNotLoaded) {
  core_.inquiry_failure = cudaErrorNoDevice;
  EXPECT_EQ(nvmlInit_v2(), NVML_ERROR_DRIVER_NOT_LOADED);
  unsigned count = 0;
  EXPECT_EQ(nvmlDeviceGetCount_v2(&count), NVML_ERROR_UNINITIALIZED);
}

TEST_F(NvmlClientTest, InitialisationsAreCounted) {
  unsigned count = 0;
  EXPECT_EQ(nvmlShutdown(), NVML_ERROR_UNINITIALIZED);
  ASSERT_EQ(nvmlInit(), NVML_SUCCESS);
  ASSERT_EQ(nvmlInitWithFlags(1), NVML_SUCCESS);
  EXPECT_EQ(nvmlShutdown(), NVML_SUCCESS);
  EXPECT_EQ(nvmlDeviceGetCount(&count), NVML_SUCCESS);
  EXPECT_EQ(nvmlShutdown(), NVML_SUCCESS);
  EXPECT_EQ(nvmlDeviceGetCount(&count), NVML_ERROR_UNINITIALIZED);
  EXPECT_TRUE(core_.sent.empty()) << "nothing needs a GPU";
}

// So that a program that only counts devices may fork children that use them.
TEST_F(NvmlClientTest, CudaIsNotInitialised) {
  core_.failure = cudaErrorInitializationError;  // as if Start were refused
  ASSERT_EQ(nvmlInit(), NVML_SUCCESS);
  unsigned count = 0;
  EXPECT_EQ(nvmlDeviceGetCount(&count), NVML_SUCCESS);
  EXPECT_EQ(count, 2u);
  nvmlMemory_t memory{};
  EXPECT_EQ(nvmlDeviceGetMemoryInfo(Device(0), &memory), NVML_SUCCESS);
  nvmlUtilization_t utilization{};
  EXPECT_EQ(nvmlDeviceGetUtilizationRates(Device(0), &utilization), NVML_SUCCESS);
  EXPECT_EQ(utilization.gpu, 0u);
}

TEST_F(NvmlClientTest, DevicesAreTheFunctions) {
  ASSERT_EQ(nvmlInit_v2(), NVML_SUCCESS);
  unsigned number = 0;
  ASSERT_EQ(nvmlDeviceGetCount_v2(&number), NVML_SUCCESS);
  EXPECT_EQ(number, 2u);
  ASSERT_EQ(nvmlDeviceGetIndex(Device(1), &number), NVML_SUCCESS);
  EXPECT_EQ(number, 1u);
  nvmlDevice_t none = nullptr;
  EXPECT_EQ(nvmlDeviceGetHandleByIndex_v2(2, &none), NVML_ERROR_INVALID_ARGUMENT);
  for (const std::uintptr_t wild : {0, 3, 0x1000}) {
    const auto device = reinterpret_cast<nvmlDevice_t>(wild);
    EXPECT_EQ(nvmlDeviceGetIndex(device, &number), NVML_ERROR_INVALID_ARGUMENT);
  }
  int major = 0;
  int minor = -1;
  ASSERT_EQ(nvmlDeviceGetCudaComputeCapability(Device(0), &major, &minor), NVML_SUCCESS);
  EXPECT_EQ(major, 12);
  EXPECT_EQ(minor, 0);
}

TEST_F(NvmlClientTest, ADeviceIsFoundByWhatNamesIt) {
  ASSERT_EQ(nvmlInit_v2(), NVML_SUCCESS);
  nvmlDevice_t device = nullptr;
  EXPECT_EQ(nvmlDeviceGetHandleByUUID(kFirstUuid, &device), NVML_SUCCESS);
  EXPECT_EQ(device, Device(0));
  EXPECT_EQ(nvmlDeviceGetHandleByUUID("GPU-00", &device), NVML_ERROR_NOT_FOUND);
  for (const char* const id : {"0001:0b:02.0", "00000001:0B:02.0", "1:b:2"}) {
    EXPECT_EQ(nvmlDeviceGetHandleByPciBusId_v2(id, &device), NVML_SUCCESS);
    EXPECT_EQ(device, Device(1));
  }
  EXPECT_EQ(nvmlDeviceGetHandleByPciBusId_v2("0001:0b:03.0", &device), NVML_ERROR_NOT_FOUND);
  EXPECT_EQ(nvmlDeviceGetHandleByPciBusId_v2("somewhere", &device), NVML_ERROR_INVALID_ARGUMENT);
}

TEST_F(NvmlClientTest, TextsMustFit) {
  ASSERT_EQ(nvmlInit_v2(), NVML_SUCCESS);
  std::array<char, 96> text{};
  ASSERT_EQ(nvmlDeviceGetUUID(Device(0), text.data(), text.size()), NVML_SUCCESS);
  EXPECT_STREQ(text.data(), kFirstUuid);
  ASSERT_EQ(nvmlDeviceGetName(Device(0), text.data(), sizeof "Fake GPU"), NVML_SUCCESS);
  EXPECT_STREQ(text.data(), "Fake GPU");
  EXPECT_EQ(nvmlDeviceGetName(Device(0), text.data(), sizeof "Fake GPU" - 1),
            NVML_ERROR_INSUFFICIENT_SIZE);
  EXPECT_EQ(nvmlDeviceGetName(Device(0), nullptr, 96), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(nvmlSystemGetNVMLVersion(text.data(), 96), NVML_SUCCESS);
  EXPECT_EQ(std::string(text.data()).substr(0, 3), "13.");
}

TEST_F(NvmlClientTest, PciInformationIsInAllItsForms) {
  core_.hello.devices[1].attributes[cudaDevAttrGpuPciDeviceId] = 0x1eb810de;
  ASSERT_EQ(nvmlInit_v2(), NVML_SUCCESS);
  nvmlPciInfo_t info{};
  ASSERT_EQ(nvmlDeviceGetPciInfo_v3(Device(1), &info), NVML_SUCCESS);
  EXPECT_STREQ(info.busIdLegacy, "0001:0B:02.0");
  EXPECT_STREQ(info.busId, "00000001:0B:02.0");
  EXPECT_EQ(info.domain, 1u);
  EXPECT_EQ(info.bus, 11u);
  EXPECT_EQ(info.device, 2u);
  EXPECT_EQ(info.pciDeviceId, 0x1eb810deu);
}

TEST_F(NvmlClientTest, MemoryIsWhatTheDaemonSays) {
  core_.hello.devices[1].total_bytes = 1000;
  ASSERT_EQ(nvmlInit_v2(), NVML_SUCCESS);
  FakeClientCore::Second().free_bytes = 300;
  nvmlMemory_t memory{};
  ASSERT_EQ(nvmlDeviceGetMemoryInfo(Device(1), &memory), NVML_SUCCESS);
  EXPECT_EQ(memory.total, 1000u);
  EXPECT_EQ(memory.free, 300u);
  EXPECT_EQ(memory.used, 700u);
  nvmlMemory_v2_t more{};
  EXPECT_EQ(nvmlDeviceGetMemoryInfo_v2(Device(1), &more), NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
  more.version = kMemoryVersion2;
  more.reserved = 7;
  ASSERT_EQ(nvmlDeviceGetMemoryInfo_v2(Device(1), &more), NVML_SUCCESS);
  EXPECT_EQ(more.used, 700u);
  EXPECT_EQ(more.reserved, 0u);
  core_.inquiry_failure = cudaErrorDevicesUnavailable;
  EXPECT_EQ(nvmlDeviceGetMemoryInfo(Device(1), &memory), NVML_ERROR_GPU_IS_LOST);
}

TEST_F(NvmlClientTest, UtilizationIsTheShareOfTimeWithAGpu) {
  ASSERT_EQ(nvmlInit_v2(), NVML_SUCCESS);
  core_.use = {4096, 0.376};
  nvmlUtilization_t utilization{};
  ASSERT_EQ(nvmlDeviceGetUtilizationRates(Device(0), &utilization), NVML_SUCCESS);
  EXPECT_EQ(utilization.gpu, 38u);
  EXPECT_EQ(utilization.memory, 38u);
}

TEST_F(NvmlClientTest, TheOnlyProcessIsThisOne) {
  ASSERT_EQ(nvmlInit_v2(), NVML_SUCCESS);
  core_.use.allocated_bytes = 4096;
  unsigned count = 0;
  EXPECT_EQ(nvmlDeviceGetComputeRunningProcesses_v3(Device(0), &count, nullptr),
            NVML_ERROR_INSUFFICIENT_SIZE);
  EXPECT_EQ(count, 1u);
  count = 8;
  std::array<nvmlProcessInfo_v2_t, 8> processes{};
  ASSERT_EQ(nvmlDeviceGetComputeRunningProcesses_v3(Device(0), &count, processes.data()),
            NVML_SUCCESS);
  ASSERT_EQ(count, 1u);
  EXPECT_EQ(processes[0].pid, static_cast<unsigned>(getpid()));
  EXPECT_EQ(processes[0].usedGpuMemory, 4096u);
  EXPECT_EQ(processes[0].gpuInstanceId, ~0u);
  nvmlProcessInfo_v1_t process{};
  ASSERT_EQ(nvmlDeviceGetComputeRunningProcesses(Device(0), &count, &process), NVML_SUCCESS);
  EXPECT_EQ(process.usedGpuMemory, 4096u);
}

TEST_F(NvmlClientTest, ADeviceThatIsNotUsedHasNoProcess) {
  ASSERT_EQ(nvmlInit_v2(), NVML_SUCCESS);
  FakeClientCore::Second().failure = cudaErrorNoDevice;  // as if it was never started
  unsigned count = 3;
  EXPECT_EQ(nvmlDeviceGetComputeRunningProcesses_v3(Device(1), &count, nullptr), NVML_SUCCESS);
  EXPECT_EQ(count, 0u);
}

TEST_F(NvmlClientTest, VersionsAreThoseOfTheGpusDriver) {
  core_.hello.is_emulated = true;
  ASSERT_EQ(nvmlInit_v2(), NVML_SUCCESS);
  int cuda = 0;
  ASSERT_EQ(nvmlSystemGetCudaDriverVersion(&cuda), NVML_SUCCESS);
  EXPECT_EQ(cuda, 13'000);
  std::array<char, 80> text{};
  EXPECT_EQ(nvmlSystemGetDriverVersion(text.data(), text.size()), NVML_ERROR_NOT_SUPPORTED);
}

TEST_F(NvmlClientTest, WhatIsNotSupportedSaysSo) {
  EXPECT_EQ(nvmlDeviceGetTemperature(), NVML_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(core_.warnings, std::vector<std::string>{"nvmlDeviceGetTemperature"});
  EXPECT_STREQ(nvmlErrorString(NVML_ERROR_NOT_SUPPORTED), "Not Supported");
  EXPECT_STREQ(nvmlErrorString(static_cast<nvmlReturn_t>(77)), "Unknown Error");
}

TEST(DriverVersionTest, ItIsTheFirstWordOfNumbersAndDots) {
  EXPECT_EQ(
      DriverVersionIn("NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun Jul 27\n"
                      "GCC version:  gcc version 12.2.0\n"),
      "580.65.06");
  EXPECT_EQ(DriverVersionIn("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  575.51"),
            "575.51");
  EXPECT_EQ(DriverVersionIn("no version 580 here\n"), std::nullopt);
  EXPECT_EQ(DriverVersionIn(""), std::nullopt);
}

}  // namespace
}  // namespace torpor::shim
