// Modules without PTX, on a GPU that runs machine code of sm_75 and on one that does not.
#include <gmock/gmock.h>

#include <array>
#include <iterator>
#include <numeric>
#include <string>
#include <vector>

#include "tests/emulator/driver/api/module_test.h"
#include "tests/nvidia/fatbin_builder.h"

namespace torpor::emulator {
namespace {

using testing::HasSubstr;

class MachineCodeTest : public ModuleTest {
 protected:
  void SetUp() override {
    Start(
        "  - {memory: 256MiB, compute_capability: 7.5}\n"
        "  - {memory: 256MiB}\n");
  }

  // What the driver says of a module that has nothing for this GPU.
  std::string LogOfRefused(const std::string& image) {
    std::array<char, 1000> log{};
    std::array<CUjit_option, 2> options = {CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                                           CU_JIT_ERROR_LOG_BUFFER};
    std::array<void*, 2> values = {reinterpret_cast<void*>(log.size()), log.data()};
    EXPECT_EQ(cuModuleLoadDataEx(&module_, image.data(), 2, options.data(), values.data()),
              CUDA_ERROR_NO_BINARY_FOR_GPU);
    return log.data();
  }
};

TEST_F(MachineCodeTest, OfAFatbinRuns) {
  Load(ReadFile(TORPOR_TEST_SASS_FATBIN));
  ExpectThatItAdds();
}

TEST_F(MachineCodeTest, OfACubinRuns) {
  {
    // The driver keeps what it needs.
    const std::string image = ReadFile(TORPOR_TEST_CUBIN);
    Load(image);
  }
  ExpectThatItAdds();
}

TEST_F(MachineCodeTest, FunctionsSayWhatTheyNeed) {
  Load(ReadFile(TORPOR_TEST_CUBIN));
  CUfunction scale = Find("scale");
  const auto parameter = [&](std::size_t index) {
    std::size_t offset = 0;
    std::size_t size = 0;
    EXPECT_CUDA(cuFuncGetParamInfo(scale, index, &offset, &size));
    return std::pair(offset, size);
  };
  EXPECT_EQ(parameter(0), std::pair(std::size_t{0}, std::size_t{8}));
  EXPECT_EQ(parameter(1), std::pair(std::size_t{8}, std::size_t{16}));
  EXPECT_EQ(parameter(2), std::pair(std::size_t{24}, std::size_t{1}));
  std::size_t offset = 0;
  std::size_t size = 0;
  EXPECT_EQ(cuFuncGetParamInfo(scale, 3, &offset, &size), CUDA_ERROR_INVALID_VALUE);

  const auto attribute = [&](const char* name, CUfunction_attribute which) {
    int value = -1;
    EXPECT_CUDA(cuFuncGetAttribute(&value, which, Find(name)));
    return value;
  };
  EXPECT_EQ(attribute("bounded", CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK), 128);
  EXPECT_EQ(attribute("roomy", CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES), 4096 * 4);
  EXPECT_EQ(attribute("lookup", CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES), 16);
  EXPECT_EQ(attribute("add", CU_FUNC_ATTRIBUTE_BINARY_VERSION), 75);
  EXPECT_GT(attribute("add", CU_FUNC_ATTRIBUTE_NUM_REGS), 0);
}

TEST_F(MachineCodeTest, VariablesAreFoundAndUsed) {
  Load(ReadFile(TORPOR_TEST_SASS_FATBIN));
  CUdeviceptr table = 0;
  CUdeviceptr counter = 0;
  std::size_t bytes = 0;
  ASSERT_CUDA(cuModuleGetGlobal(&counter, &bytes, module_, "counter"));
  EXPECT_EQ(bytes, 4U);
  ASSERT_CUDA(cuModuleGetGlobal(&table, &bytes, module_, "table"));
  EXPECT_EQ(bytes, 16U);
  const std::array<float, 4> entries = {2, 3, 5, 7};
  ASSERT_CUDA(cuMemcpyHtoD(table, entries.data(), sizeof entries));
  CUdeviceptr x = Upload(std::vector<float>(8));
  void* values[] = {&x};
  ASSERT_CUDA(cuLaunchKernel(Find("lookup"), 1, 1, 1, 8, 1, 1, 0, nullptr, values, nullptr));
  EXPECT_EQ(Download<float>(x, 8), (std::vector<float>{2, 3, 5, 7, 2, 3, 5, 7}));
  EXPECT_EQ(Download<int>(counter, 1), std::vector<int>{8});
}

TEST_F(MachineCodeTest, SharedMemoryIsStaticAndDynamic) {
  Load(ReadFile(TORPOR_TEST_SASS_FATBIN));
  for (const char* name : {"reverse", "roomy"}) {
    CUdeviceptr x = Upload(std::vector<int>{1, 2, 3, 4});
    void* values[] = {&x};
    ASSERT_CUDA(cuLaunchKernel(Find(name), 1, 1, 1, 4, 1, 1, 16, nullptr, values, nullptr));
    EXPECT_EQ(Download<int>(x, 4), (std::vector<int>{4, 3, 2, 1})) << name;
  }
}

TEST_F(MachineCodeTest, AnotherGpuSaysWhatWouldHelp) {
  CUcontext other = nullptr;
  ASSERT_CUDA(cuDevicePrimaryCtxRetain(&other, 1));
  ASSERT_CUDA(cuCtxSetCurrent(other));
  for (const char* path : {TORPOR_TEST_SASS_FATBIN, TORPOR_TEST_CUBIN}) {
    const std::string log = LogOfRefused(ReadFile(path));
    EXPECT_THAT(log, HasSubstr("sm_75"));
    EXPECT_THAT(log, HasSubstr("compute_capability: 7.5"));
  }
  ASSERT_CUDA(cuDevicePrimaryCtxRelease(1));
}

TEST_F(MachineCodeTest, PtxThatIsTooNewIsNotDenied) {
  const std::string log =
      LogOfRefused(MakeContainer({{.architecture = 90, .payload = ".version 9.0"},
                                  {.kind = 2, .architecture = 80, .payload = "elf"}}));
  EXPECT_THAT(log, HasSubstr("no PTX for compute capability 7.5 or lower"));
  EXPECT_THAT(log, HasSubstr("sm_80"));
}

TEST_F(MachineCodeTest, ADamagedCubinIsAnInvalidImage) {
  std::string image = ReadFile(TORPOR_TEST_CUBIN);
  image[18] = 62;  // e_machine: x86-64
  EXPECT_EQ(cuModuleLoadData(&module_, image.data()), CUDA_ERROR_INVALID_IMAGE);
}

}  // namespace
}  // namespace torpor::emulator
