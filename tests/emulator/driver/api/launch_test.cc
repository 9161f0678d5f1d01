#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <numeric>
#include <thread>
#include <vector>

#include "tests/emulator/driver/api/module_test.h"

namespace torpor::emulator {
namespace {

class LaunchTest : public ModuleTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    Load(ReadFile(TORPOR_TEST_FATBIN));
  }

  // One block.
  static CUresult Launch(CUfunction function, unsigned threads, std::vector<void*> values,
                         unsigned shared = 0, CUstream stream = nullptr) {
    return cuLaunchKernel(function, 1, 1, 1, threads, 1, 1, shared, stream, values.data(), nullptr);
  }
};

TEST_F(LaunchTest, AddsVectors) { ExpectThatItAdds(); }

TEST_F(LaunchTest, EventsOfALaunchAreRecordedBehindIt) {
  CUdeviceptr x = Upload(std::vector<int>{1, 2});
  CUstream stream = nullptr;
  CUevent event = nullptr;
  ASSERT_CUDA(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  std::promise<void> gate;
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT;
  CUlaunchConfig config{};
  config.gridDimX = config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = 2;
  config.blockDimY = config.blockDimZ = 1;
  config.sharedMemBytes = 8;
  config.hStream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  void* values[] = {&x};
  CUfunction reverse = Find("reverse");
  EXPECT_EQ(cuLaunchKernelEx(&config, reverse, values, nullptr), CUDA_ERROR_INVALID_HANDLE);
  ASSERT_CUDA(cuFuncLoad(reverse));  // a first launch may wait for the whole context
  ASSERT_CUDA(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  attribute.value.launchCompletionEvent.event = event;
  ASSERT_CUDA(cuLaunchHostFunc(
      stream, [](void* data) { static_cast<std::promise<void>*>(data)->get_future().wait(); },
      &gate));
  ASSERT_CUDA(cuLaunchKernelEx(&config, reverse, values, nullptr));
  EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_NOT_READY);
  gate.set_value();
  ASSERT_CUDA(cuEventSynchronize(event));
  EXPECT_EQ(Download<int>(x, 2), (std::vector<int>{2, 1}));

  attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attribute.value.clusterDim = {65536, 65536, 1};
  EXPECT_EQ(cuLaunchKernelEx(&config, reverse, values, nullptr), CUDA_ERROR_INVALID_CLUSTER_SIZE);
}

TEST_F(LaunchTest, ClustersHaveTheSizesThatTheFunctionAllows) {
  CUfunction reverse = Find("reverse");
  CUdeviceptr x = Upload(std::vector<int>{1, 2});
  void* values[] = {&x};
  const auto launch = [&](unsigned grid, unsigned cluster) {
    CUlaunchAttribute attribute{};
    attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute.value.clusterDim = {cluster, 1, 1};
    CUlaunchConfig config{};
    config.gridDimX = grid;
    config.gridDimY = config.gridDimZ = config.blockDimX = 1;
    config.blockDimY = config.blockDimZ = 1;
    config.sharedMemBytes = 8;
    config.attrs = &attribute;
    config.numAttrs = 1;
    int clusters = 0;
    const CUresult asked = cuOccupancyMaxActiveClusters(&clusters, reverse, &config);
    const CUresult launched = cuLaunchKernelEx(&config, reverse, values, nullptr);
    EXPECT_EQ(asked, launched);
    EXPECT_EQ(clusters > 0, launched == CUDA_SUCCESS);
    return launched;
  };
  const auto largest = [&] {
    CUlaunchConfig config{};
    config.blockDimX = config.blockDimY = config.blockDimZ = 1;
    int blocks = 0;
    EXPECT_CUDA(cuOccupancyMaxPotentialClusterSize(&blocks, reverse, &config));
    return blocks;
  };
  EXPECT_EQ(launch(16, 8), CUDA_SUCCESS);
  EXPECT_EQ(launch(6, 4), CUDA_ERROR_INVALID_CLUSTER_SIZE);
  EXPECT_EQ(launch(16, 16), CUDA_ERROR_INVALID_CLUSTER_SIZE);
  EXPECT_EQ(largest(), 8);
  ASSERT_CUDA(cuFuncSetAttribute(reverse, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
  EXPECT_EQ(launch(16, 16), CUDA_SUCCESS);
  EXPECT_EQ(largest(), 16);
  // A launch that names no size takes the function's, and each axis counts.
  ASSERT_CUDA(cuFuncSetAttribute(reverse, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, 2));
  const auto plain = [&](unsigned grid) {
    return cuLaunchKernel(reverse, grid, 1, 1, 1, 1, 1, 8, nullptr, values, nullptr);
  };
  EXPECT_EQ(plain(2), CUDA_ERROR_INVALID_CLUSTER_SIZE);
  ASSERT_CUDA(cuFuncSetAttribute(reverse, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, 1));
  ASSERT_CUDA(cuFuncSetAttribute(reverse, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, 1));
  EXPECT_EQ(plain(2), CUDA_SUCCESS);
  EXPECT_EQ(plain(3), CUDA_ERROR_INVALID_CLUSTER_SIZE);
  int width = 0;
  ASSERT_CUDA(cuFuncGetAttribute(&width, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, reverse));
  EXPECT_EQ(width, 2);
  ASSERT_CUDA(cuCtxSynchronize());
}

TEST_F(LaunchTest, ParameterInfoAndBuffer) {
  CUfunction function = Find("scale");
  size_t offset = 0;
  size_t size = 0;
  ASSERT_CUDA(cuFuncGetParamInfo(function, 0, &offset, &size));
  EXPECT_EQ(std::pair(offset, size), std::pair(size_t{0}, size_t{8}));
  ASSERT_CUDA(cuFuncGetParamInfo(function, 1, &offset, &size));
  EXPECT_EQ(std::pair(offset, size), std::pair(size_t{8}, size_t{16}));
  ASSERT_CUDA(cuFuncGetParamInfo(function, 2, &offset, &size));
  EXPECT_EQ(std::pair(offset, size), std::pair(size_t{24}, size_t{1}));
  EXPECT_EQ(cuFuncGetParamInfo(function, 3, &offset, &size), CUDA_ERROR_INVALID_VALUE);

  struct {
    CUdeviceptr x;
    float factor;
    double offset;
    char last;
  } parameters{Upload(std::vector<float>{1, 2, 3, 4}), 2, 100, 5};
  size_t bytes = sizeof(parameters);
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &parameters, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   CU_LAUNCH_PARAM_END};
  ASSERT_CUDA(cuLaunchKernel(function, 1, 1, 1, 4, 1, 1, 0, nullptr, nullptr, extra));
  EXPECT_EQ(Download<float>(parameters.x, 4), (std::vector<float>{107, 109, 111, 113}));
}

TEST_F(LaunchTest, ModuleVariables) {
  CUdeviceptr table = 0;
  size_t size = 0;
  ASSERT_CUDA(cuModuleGetGlobal(&table, &size, module_, "table"));
  EXPECT_EQ(size, 16U);
  const float values[4] = {1, 2, 3, 4};
  ASSERT_CUDA(cuMemcpyHtoD(table, values, sizeof(values)));
  CUdeviceptr x = Upload(std::vector<float>(6));
  ASSERT_CUDA(Launch(Find("lookup"), 6, {&x}));
  EXPECT_EQ(Download<float>(x, 6), (std::vector<float>{1, 2, 3, 4, 1, 2}));
  CUdeviceptr counter = 0;
  ASSERT_CUDA(cuModuleGetGlobal(&counter, &size, module_, "counter"));
  EXPECT_EQ(Download<int>(counter, 1)[0], 6);
  EXPECT_EQ(cuModuleGetGlobal(&counter, &size, module_, "nothing"), CUDA_ERROR_NOT_FOUND);
}

TEST_F(LaunchTest, DynamicSharedMemory) {
  std::vector<int> values(64);
  std::iota(values.begin(), values.end(), 0);
  CUdeviceptr x = Upload(values);
  CUfunction function = Find("reverse");
  ASSERT_CUDA(Launch(function, 64, {&x}, 256));
  EXPECT_EQ(Download<int>(x, 64)[0], 63);
  EXPECT_EQ(Launch(function, 64, {&x}, 49 * 1024), CUDA_ERROR_INVALID_VALUE);
  ASSERT_CUDA(
      cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 64 * 1024));
  EXPECT_CUDA(Launch(function, 64, {&x}, 49 * 1024));
  EXPECT_EQ(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1 << 20),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_CUDA(cuCtxSynchronize());
}

TEST_F(LaunchTest, StaticSharedMemoryLeavesLessForDynamic) {
  constexpr int kKibibyte = 1024;
  CUdeviceptr x = Upload(std::vector<int>(64));
  CUfunction function = Find("roomy");
  int value = 0;
  ASSERT_CUDA(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function));
  ASSERT_EQ(value, 16 * kKibibyte);
  const auto dynamic_limit = [&] {
    EXPECT_CUDA(
        cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, function));
    return value;
  };
  EXPECT_EQ(dynamic_limit(), 32 * kKibibyte);
  EXPECT_CUDA(Launch(function, 64, {&x}, 32 * kKibibyte));
  EXPECT_EQ(Launch(function, 64, {&x}, 32 * kKibibyte + 1), CUDA_ERROR_INVALID_VALUE);
  ASSERT_CUDA(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                 83 * kKibibyte));
  EXPECT_EQ(dynamic_limit(), 83 * kKibibyte);
  EXPECT_CUDA(Launch(function, 64, {&x}, 83 * kKibibyte));
  EXPECT_EQ(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                               83 * kKibibyte + 1),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_CUDA(cuCtxSynchronize());
}

TEST_F(LaunchTest, WrongLaunchesAreToldAtOnce) {
  CUdeviceptr x = Upload(std::vector<int>(1024));
  CUfunction function = Find("bounded");
  EXPECT_EQ(Launch(function, 0, {&x}), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Launch(function, 1025, {&x}), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Launch(function, 129, {&x}), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  EXPECT_EQ(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Launch(nullptr, 1, {&x}), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_CUDA(Launch(function, 128, {&x}));
  EXPECT_CUDA(cuCtxSynchronize());
}

TEST_F(LaunchTest, AFaultPoisonsTheContext) {
  CUfunction function = Find("poke");
  CUdeviceptr nowhere = 0x2345'0000'0000;
  ASSERT_CUDA(Launch(function, 1, {&nowhere}));
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  CUdeviceptr address = 0;
  EXPECT_EQ(cuMemAlloc(&address, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(cuStreamSynchronize(nullptr), CUDA_ERROR_ILLEGAL_ADDRESS);
  // Another device does not care; a reset heals.
  CUcontext second = nullptr;
  ASSERT_CUDA(cuDevicePrimaryCtxRetain(&second, 1));
  ASSERT_CUDA(cuCtxPushCurrent(second));
  EXPECT_CUDA(cuMemAlloc(&address, 4));
  ASSERT_CUDA(cuDevicePrimaryCtxReset(0));
  ASSERT_CUDA(cuDevicePrimaryCtxRetain(&context_, 0));
  ASSERT_CUDA(cuCtxSetCurrent(context_));
  EXPECT_CUDA(cuMemAlloc(&address, 4));
}

TEST_F(LaunchTest, FaultsWhereverThePointerPoints) {
  int mine = 0;
  CUdeviceptr host = reinterpret_cast<CUdeviceptr>(&mine);
  CUfunction function = Find("poke");
  ASSERT_CUDA(Launch(function, 1, {&host}));
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(mine, 0);
}

TEST_F(LaunchTest, KernelsReachRegisteredMemory) {
  std::vector<int> mine(4096);
  ASSERT_CUDA(cuMemHostRegister(mine.data(), mine.size() * 4, CU_MEMHOSTREGISTER_DEVICEMAP));
  CUdeviceptr address = 0;
  ASSERT_CUDA(cuMemHostGetDevicePointer(&address, mine.data(), 0));
  ASSERT_CUDA(Launch(Find("poke"), 1, {&address}));
  ASSERT_CUDA(cuCtxSynchronize());
  EXPECT_EQ(mine[0], 1);
}

TEST_F(LaunchTest, ModulesTellWhatTheyHold) {
  unsigned count = 0;
  ASSERT_CUDA(cuModuleGetFunctionCount(&count, module_));
  EXPECT_EQ(count, 7U);
  std::vector<CUfunction> functions(count);
  ASSERT_CUDA(cuModuleEnumerateFunctions(functions.data(), count, module_));
  for (CUfunction function : functions) {
    const char* name = nullptr;
    ASSERT_CUDA(cuFuncGetName(&name, function));
    EXPECT_EQ(Find(name), function);
  }
  int value = 0;
  ASSERT_CUDA(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, Find("bounded")));
  EXPECT_EQ(value, 128);
  CUfunction none = nullptr;
  EXPECT_EQ(cuModuleGetFunction(&none, module_, "none"), CUDA_ERROR_NOT_FOUND);
  CUfunctionLoadingState state{};
  ASSERT_CUDA(cuFuncIsLoaded(&state, functions[0]));
  EXPECT_EQ(state, CU_FUNCTION_LOADING_STATE_UNLOADED);
  ASSERT_CUDA(cuFuncLoad(functions[0]));
  ASSERT_CUDA(cuFuncIsLoaded(&state, functions[0]));
  EXPECT_EQ(state, CU_FUNCTION_LOADING_STATE_LOADED);
  ASSERT_CUDA(cuModuleUnload(module_));
  EXPECT_EQ(cuFuncLoad(functions[0]), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuModuleUnload(module_), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(LaunchTest, TheFirstLaunchCompilesOnlyWhatItRuns) {
  const std::filesystem::path cache =
      testing::TempDir() + "launch-cache-" + std::to_string(getpid());
  setenv("TORPOR_EMULATOR_CACHE_DIR", cache.c_str(), 1);
  CUdeviceptr x = Upload(std::vector<int>(16));
  void* values[] = {&x};
  ASSERT_CUDA(cuLaunchKernel(Find("bounded"), 1, 1, 1, 16, 2, 1, 0, nullptr, values, nullptr));
  ASSERT_CUDA(cuCtxSynchronize());
  const std::filesystem::directory_iterator entries(cache);
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 1);
  unsetenv("TORPOR_EMULATOR_CACHE_DIR");
  std::filesystem::remove_all(cache);
}

TEST_F(LaunchTest, Occupancy) {
  int blocks = 0;
  ASSERT_CUDA(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, Find("add"), 256, 0));
  EXPECT_EQ(blocks, 6);
  ASSERT_CUDA(
      cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, Find("add"), 256, size_t{90} * 1024));
  EXPECT_EQ(blocks, 1);
  int grid = 0;
  int block = 0;
  ASSERT_CUDA(cuOccupancyMaxPotentialBlockSize(&grid, &block, Find("bounded"), nullptr, 0, 0));
  EXPECT_EQ(block, 128);
  EXPECT_GT(grid, 0);
}

TEST_F(LaunchTest, SharedMemoryThatBlocksLeaveEachOther) {
  constexpr size_t kKibibyte = 1024;
  const auto available = [](CUfunction function, int blocks) {
    size_t bytes = 1;
    EXPECT_CUDA(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, function, blocks, 64));
    return bytes;
  };
  CUfunction none = Find("add");
  CUfunction some = Find("roomy");
  EXPECT_EQ(available(none, 1), 99 * kKibibyte);
  EXPECT_EQ(available(none, 4), 24 * kKibibyte);
  EXPECT_EQ(available(none, 101), 0U);
  EXPECT_EQ(available(some, 1), 83 * kKibibyte);
  EXPECT_EQ(available(some, 4), 8 * kKibibyte);
  EXPECT_EQ(available(some, 24), 0U);
}

TEST_F(LaunchTest, BadImages) {
  CUmodule module = nullptr;
  EXPECT_EQ(cuModuleLoadData(&module, "this is not PTX"), CUDA_ERROR_INVALID_PTX);
  EXPECT_EQ(cuModuleLoadData(&module,
                             "\x7f"
                             "ELF and so on"),
            CUDA_ERROR_INVALID_IMAGE);
  EXPECT_EQ(cuModuleLoad(&module, "/nonexistent.fatbin"), CUDA_ERROR_FILE_NOT_FOUND);
  EXPECT_EQ(cuModuleLoadData(&module, nullptr), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(LaunchTest, ManyThreadsLaunch) {
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this] {
      ASSERT_CUDA(cuCtxSetCurrent(context_));
      CUstream stream = nullptr;
      ASSERT_CUDA(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
      CUdeviceptr x = Upload(std::vector<int>(64, 7));
      CUfunction function = Find("reverse");
      for (int i = 0; i < 100; ++i) ASSERT_CUDA(Launch(function, 64, {&x}, 256, stream));
      ASSERT_CUDA(cuStreamSynchronize(stream));
      EXPECT_EQ(Download<int>(x, 64), std::vector<int>(64, 7));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(PerThreadTest, TheOtherNameHasTheOtherDefault) {
  ASSERT_CUDA(cuInit(0));
  void* function = nullptr;
  ASSERT_CUDA(cuGetProcAddress("cuStreamGetId", &function, 13000,
                               CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, nullptr));
  CUcontext context = nullptr;
  ASSERT_CUDA(cuDevicePrimaryCtxRetain(&context, 0));
  ASSERT_CUDA(cuCtxSetCurrent(context));
  unsigned long long mine = 0;
  unsigned long long legacy = 0;
  ASSERT_CUDA(reinterpret_cast<decltype(&cuStreamGetId)>(function)(nullptr, &mine));
  ASSERT_CUDA(cuStreamGetId(nullptr, &legacy));
  EXPECT_NE(mine, legacy);
}

}  // namespace
}  // namespace torpor::emulator
