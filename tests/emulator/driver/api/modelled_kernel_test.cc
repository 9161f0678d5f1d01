#include <chrono>
#include <string>
#include <utility>

#include "emulator/node/model_account.h"
#include "tests/emulator/driver/api/cuda_test.h"

namespace torpor::emulator {
namespace {

using std::chrono::milliseconds;

constexpr char kModule[] = R"(.version 8.0
.target sm_75
.address_size 64
.visible .entry long_one(.param .u64 p) {
  .reg .b64 %rd<2>;
  .reg .b32 %r<3>;
  ld.param.u64 %rd1, [p];
  ld.global.u32 %r1, [%rd1];
  add.u32 %r2, %r1, 1;
  st.global.u32 [%rd1], %r2;
  ret;
}
.visible .entry short_one() { ret; }
)";

// One GPU on which kernels that begin with "long" take 3 modelled milliseconds, twice that in
// truth.
class ModelledKernelTest : public CudaTest {
 protected:
  explicit ModelledKernelTest(std::string more = {}) : more_(std::move(more)) {}

  void SetUp() override {
    const std::string process = std::to_string(getpid());
    const std::string topology = testing::TempDir() + "topology-" + process + ".yaml";
    const std::string node = testing::TempDir() + "node-" + process;
    std::ofstream(topology) << "version: v1\ntime_scale: 2\ngpus: [{memory: 64MiB}]\n"
                               "kernels: [{name: 'long*', us: 3000}]\n"
                            << more_;
    setenv("TORPOR_EMULATOR_TOPOLOGY", topology.c_str(), 1);
    setenv("TORPOR_EMULATOR_NODE", node.c_str(), 1);
    ASSERT_CUDA(cuInit(0));
    std::remove(topology.c_str());
    account_ = std::make_unique<NodeResult<ModelAccount>>(ModelAccount::Open(node));
    std::remove(node.c_str());
    ASSERT_TRUE(account_->ok());
    ASSERT_CUDA(cuDevicePrimaryCtxRetain(&context_, 0));
    ASSERT_CUDA(cuCtxSetCurrent(context_));
    ASSERT_CUDA(cuModuleLoadData(&module_, kModule));
    ASSERT_CUDA(cuMemAlloc(&counter_, 4));
    ASSERT_CUDA(cuMemsetD32(counter_, 0, 1));
  }

  void Launch(const char* name, CUstream stream) {
    CUfunction function = nullptr;
    ASSERT_CUDA(cuModuleGetFunction(&function, module_, name));
    void* values[] = {&counter_};
    EXPECT_CUDA(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, values, nullptr));
  }

  ModelledWork kernels() const { return (*account_)->Read().kernels; }

  const std::string more_;
  CUmodule module_ = nullptr;
  CUdeviceptr counter_ = 0;
  std::unique_ptr<NodeResult<ModelAccount>> account_;
};

TEST_F(ModelledKernelTest, TakesItsTimeAndDoesItsWork) {
  const auto begun = std::chrono::steady_clock::now();
  Launch("long_one", nullptr);
  Launch("long_one", nullptr);
  Launch("short_one", nullptr);
  ASSERT_CUDA(cuCtxSynchronize());
  EXPECT_GE(std::chrono::steady_clock::now() - begun, milliseconds(12));
  EXPECT_EQ(kernels().count, 2U);
  EXPECT_EQ(kernels().modelled, milliseconds(12));
  unsigned count = 0;
  ASSERT_CUDA(cuMemcpyDtoH(&count, counter_, 4));
  EXPECT_EQ(count, 2U);
}

TEST_F(ModelledKernelTest, KernelsOfSeveralStreamsTakeTurns) {
  CUstream streams[2];
  for (CUstream& stream : streams) ASSERT_CUDA(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  Launch("long_one", streams[0]);
  ASSERT_CUDA(cuCtxSynchronize());  // compiled
  const auto begun = std::chrono::steady_clock::now();
  for (CUstream stream : streams) Launch("long_one", stream);
  ASSERT_CUDA(cuCtxSynchronize());
  EXPECT_GE(std::chrono::steady_clock::now() - begun, milliseconds(12));
}

class UncomputedKernelTest : public ModelledKernelTest {
 protected:
  UncomputedKernelTest() : ModelledKernelTest("computes: false\n") {}
};

TEST_F(UncomputedKernelTest, TakesItsTimeAndDoesNothing) {
  const auto begun = std::chrono::steady_clock::now();
  Launch("long_one", nullptr);
  Launch("short_one", nullptr);
  ASSERT_CUDA(cuCtxSynchronize());
  EXPECT_GE(std::chrono::steady_clock::now() - begun, milliseconds(6));
  EXPECT_EQ(kernels().count, 1U);
  unsigned count = 0;
  ASSERT_CUDA(cuMemcpyDtoH(&count, counter_, 4));
  EXPECT_EQ(count, 0U);
}

}  // namespace
}  // namespace torpor::emulator
