#include <dlfcn.h>
#include <sys/wait.h>

#include <cstring>
#include <thread>

#include "tests/emulator/driver/api/cuda_test.h"
#include "tests/emulator/node/process.h"

namespace torpor::emulator {
namespace {

class DeviceTest : public CudaTest {};

TEST(InitTest, NothingWorksBeforeInit) {
  int count = 0;
  EXPECT_EQ(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
  EXPECT_EQ(cuInit(1), CUDA_ERROR_INVALID_VALUE);
}

TEST(InitTest, BadTopologyFailsInit) {
  setenv("TORPOR_EMULATOR_TOPOLOGY", "/nonexistent/topology.yaml", 1);
  EXPECT_EQ(cuInit(0), CUDA_ERROR_INVALID_VALUE);
}

TEST(InitTest, NoVisibleDeviceIsNoDevice) {
  setenv("CUDA_VISIBLE_DEVICES", "", 1);
  EXPECT_EQ(cuInit(0), CUDA_ERROR_NO_DEVICE);
}

TEST_F(DeviceTest, TopologyShows) {
  int count = 0;
  ASSERT_CUDA(cuDeviceGetCount(&count));
  EXPECT_EQ(count, 2);
  char name[32];
  ASSERT_CUDA(cuDeviceGetName(name, sizeof(name), 1));
  EXPECT_STREQ(name, "Second");
  ASSERT_CUDA(cuDeviceGetName(name, 4, 1));
  EXPECT_STREQ(name, "Sec");
  size_t bytes = 0;
  ASSERT_CUDA(cuDeviceTotalMem(&bytes, 0));
  EXPECT_EQ(bytes, size_t{256} << 20);
  CUdevice device = -1;
  EXPECT_EQ(cuDeviceGet(&device, 2), CUDA_ERROR_INVALID_DEVICE);
}

TEST_F(DeviceTest, EveryAttributeHasAnAnswer) {
  for (int attribute = 1; attribute < CU_DEVICE_ATTRIBUTE_MAX; ++attribute) {
    int value = -2;
    EXPECT_CUDA(cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(attribute), 0));
    EXPECT_NE(value, -2);
  }
  int value = 0;
  EXPECT_EQ(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MAX, 0), CUDA_ERROR_INVALID_VALUE);
  ASSERT_CUDA(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
  EXPECT_EQ(value, 12);
}

TEST_F(DeviceTest, BusIdNamesTheDevice) {
  char id[32];
  ASSERT_CUDA(cuDeviceGetPCIBusId(id, sizeof(id), 1));
  CUdevice device = -1;
  ASSERT_CUDA(cuDeviceGetByPCIBusId(&device, id));
  EXPECT_EQ(device, 1);
}

// Tells a GPU from others, whatever number a process gives the GPU.
struct Identity {
  CUuuid uuid;
  char bus_id[32];
  int bus;
  char name[32];
};

Identity IdentityOf(CUdevice device) {
  Identity identity{};
  EXPECT_CUDA(cuDeviceGetUuid(&identity.uuid, device));
  EXPECT_CUDA(cuDeviceGetPCIBusId(identity.bus_id, sizeof(identity.bus_id), device));
  EXPECT_CUDA(cuDeviceGetAttribute(&identity.bus, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, device));
  EXPECT_CUDA(cuDeviceGetName(identity.name, sizeof(identity.name), device));
  return identity;
}

class VisibleDevicesTest : public CudaTest {
 protected:
  void SetUp() override {}
  void TearDown() override {}
};

TEST_F(VisibleDevicesTest, IdentityIsThatOfThePlaceInTheTopology) {
  int channel[2];
  ASSERT_EQ(pipe(channel), 0);
  for (const char* visible : {"0", "1", "1,0"}) {
    const Process process([&] {
      setenv("CUDA_VISIBLE_DEVICES", visible, 1);
      Start();
      const Identity identity = IdentityOf(0);
      EXPECT_EQ(write(channel[1], &identity, sizeof(identity)), ssize_t{sizeof(identity)});
    });
  }
  Identity zero{};
  Identity one{};
  Identity one_of_two{};
  for (Identity* identity : {&zero, &one, &one_of_two}) {
    ASSERT_EQ(read(channel[0], identity, sizeof(Identity)), ssize_t{sizeof(Identity)});
  }
  EXPECT_STREQ(zero.name, "First");
  EXPECT_STREQ(one.name, "Second");
  EXPECT_NE(std::memcmp(&zero.uuid, &one.uuid, sizeof(CUuuid)), 0);
  EXPECT_STRNE(zero.bus_id, one.bus_id);
  EXPECT_NE(zero.bus, one.bus);
  EXPECT_EQ(std::memcmp(&one, &one_of_two, sizeof(Identity)), 0);
}

TEST_F(DeviceTest, ContextStack) {
  CUcontext second = nullptr;
  ASSERT_CUDA(cuCtxCreate(&second, nullptr, 0, 1));
  CUdevice device = -1;
  ASSERT_CUDA(cuCtxGetDevice(&device));
  EXPECT_EQ(device, 1);
  CUcontext popped = nullptr;
  ASSERT_CUDA(cuCtxPopCurrent(&popped));
  EXPECT_EQ(popped, second);
  ASSERT_CUDA(cuCtxGetCurrent(&popped));
  EXPECT_EQ(popped, context_);
  EXPECT_CUDA(cuCtxDestroy(second));
  EXPECT_EQ(cuCtxPushCurrent(second), CUDA_ERROR_INVALID_CONTEXT);
}

TEST_F(DeviceTest, PrimaryContextIsCounted) {
  unsigned flags = 0;
  int active = 0;
  ASSERT_CUDA(cuDevicePrimaryCtxGetState(1, &flags, &active));
  EXPECT_EQ(active, 0);
  CUcontext first = nullptr;
  CUcontext again = nullptr;
  ASSERT_CUDA(cuDevicePrimaryCtxRetain(&first, 1));
  ASSERT_CUDA(cuDevicePrimaryCtxRetain(&again, 1));
  EXPECT_EQ(first, again);
  ASSERT_CUDA(cuDevicePrimaryCtxRelease(1));
  ASSERT_CUDA(cuDevicePrimaryCtxGetState(1, &flags, &active));
  EXPECT_EQ(active, 1);
  ASSERT_CUDA(cuDevicePrimaryCtxRelease(1));
  EXPECT_EQ(cuDevicePrimaryCtxRelease(1), CUDA_ERROR_INVALID_CONTEXT);
}

TEST_F(DeviceTest, APrimaryContextHoldsWhileItIsRetained) {
  constexpr int kRounds = 50000;
  const auto retain_and_release = [] {
    for (int i = 0; i < kRounds; ++i) {
      CUcontext context = nullptr;
      unsigned version = 0;
      ASSERT_CUDA(cuDevicePrimaryCtxRetain(&context, 1));
      ASSERT_CUDA(cuCtxGetApiVersion(context, &version));
      ASSERT_CUDA(cuDevicePrimaryCtxRelease(1));
    }
  };
  std::thread other(retain_and_release);
  retain_and_release();
  other.join();
}

TEST_F(DeviceTest, AContextsMemoryEndsWithIt) {
  constexpr size_t kMax = size_t{160} << 20;  // of 256 MiB, of which two contexts take a part
  size_t free_before = 0;
  ASSERT_CUDA(cuMemGetInfo(&free_before, nullptr));
  for (int round = 0; round < 3; ++round) {
    CUcontext context = nullptr;
    ASSERT_CUDA(cuCtxCreate(&context, nullptr, 0, 0));
    CUdeviceptr memory = 0;
    void* host = nullptr;
    ASSERT_CUDA(cuMemAlloc(&memory, kMax));
    ASSERT_CUDA(cuMemHostAlloc(&host, 4096, 0));
    CUmodule module = nullptr;
    ASSERT_CUDA(cuModuleLoadData(&module,
                                 ".version 9.0\n.target sm_90\n.address_size 64\n"
                                 ".global .b8 bytes[4096];\n"));
    ASSERT_CUDA(cuCtxDestroy(context));
    EXPECT_EQ(cuMemcpyDtoH(&memory, memory, 8), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);
    size_t free = 0;
    ASSERT_CUDA(cuMemGetInfo(&free, nullptr));
    EXPECT_EQ(free, free_before);
  }
}

TEST_F(DeviceTest, ThreadWithoutContext) {
  std::thread([] {
    CUdeviceptr address = 0;
    EXPECT_EQ(cuMemAlloc(&address, 1), CUDA_ERROR_INVALID_CONTEXT);
  }).join();
}

TEST_F(DeviceTest, EveryDeclaredFunctionIsThere) {
  CUgraph graph = nullptr;
  EXPECT_EQ(cuGraphCreate(&graph, 0), CUDA_ERROR_NOT_SUPPORTED);
  void* library = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_NOW);
  ASSERT_NE(library, nullptr);
  for (const char* name : {"cuMemAlloc_v2", "cuMemcpyHtoD_v2_ptds", "cuLaunchKernel_ptsz",
                           "cuGraphLaunch", "cuGetProcAddress_v2", "cuCtxCreate_v4"}) {
    EXPECT_NE(dlsym(library, name), nullptr) << name;
  }
  EXPECT_EQ(dlsym(library, "_ZN6torpor8emulator6Driver3GetEv"), nullptr);
}

TEST_F(DeviceTest, ProcAddressPicksTheVersion) {
  void* library = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_NOW);
  const auto find = [](const char* name, int version, cuuint64_t flags = 0) {
    void* function = nullptr;
    CUdriverProcAddressQueryResult status{};
    EXPECT_CUDA(cuGetProcAddress(name, &function, version, flags, &status));
    return function;
  };
  EXPECT_EQ(find("cuCtxCreate", 13000), dlsym(library, "cuCtxCreate_v4"));
  EXPECT_EQ(find("cuCtxCreate", 12000), dlsym(library, "cuCtxCreate_v3"));
  EXPECT_EQ(find("cuMemAlloc", 13000), dlsym(library, "cuMemAlloc_v2"));
  EXPECT_EQ(find("cuLaunchKernel", 13000), dlsym(library, "cuLaunchKernel"));
  EXPECT_EQ(find("cuLaunchKernel", 13000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM),
            dlsym(library, "cuLaunchKernel_ptsz"));
  EXPECT_EQ(find("cuMemcpyHtoD", 13000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM),
            dlsym(library, "cuMemcpyHtoD_v2_ptds"));
  void* function = library;
  EXPECT_EQ(cuGetProcAddress("cuNoSuch", &function, 13000, 0, nullptr), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(function, nullptr);
}

TEST_F(DeviceTest, ErrorsHaveNames) {
  const char* text = nullptr;
  ASSERT_CUDA(cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &text));
  EXPECT_STREQ(text, "CUDA_ERROR_ILLEGAL_ADDRESS");
  ASSERT_CUDA(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text));
  EXPECT_STREQ(text, "out of memory");
  EXPECT_EQ(cuGetErrorName(static_cast<CUresult>(998), &text), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(DeviceTest, ListenersHearOfFailures) {
  std::string heard;
  CUlogsCallbackHandle handle = nullptr;
  const auto hear = [](void* data, CUlogLevel, char* text, std::size_t length) {
    static_cast<std::string*>(data)->append(text, length);
  };
  EXPECT_EQ(cuLogsRegisterCallback(nullptr, nullptr, &handle), CUDA_ERROR_INVALID_VALUE);
  ASSERT_CUDA(cuLogsRegisterCallback(hear, &heard, &handle));
  CUmodule module = nullptr;
  EXPECT_EQ(cuModuleLoadData(&module, ".version 8.0\n.target sm_75\nnonsense"),
            CUDA_ERROR_INVALID_PTX);
  EXPECT_NE(heard.find("nonsense"), std::string::npos) << heard;
  ASSERT_CUDA(cuLogsUnregisterCallback(handle));
  EXPECT_EQ(cuLogsUnregisterCallback(handle), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(DeviceTest, ForkedChildGetsErrors) {
  const pid_t child = fork();
  if (child == 0) {
    CUdeviceptr address = 0;
    const bool refused = cuMemAlloc(&address, 1) == CUDA_ERROR_NOT_INITIALIZED &&
                         cuInit(0) == CUDA_ERROR_NOT_INITIALIZED;
    std::exit(refused ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace torpor::emulator
