#include <cublas_v2.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "proto/cuda_api/cublas_commands.h"
#include "tests/client_shim/surface/fake_client_core.h"

extern "C" torpor::shim::ClientCore* torpor_client_core() {
  return &torpor::shim::FakeClientCore::Current();
}

namespace torpor::shim {
namespace {

template <typename T>
T* Device(std::uint64_t offset) {
  return reinterpret_cast<T*>(0x2000'0000'0000 + offset);
}
float FloatOf(const wire::CublasScalar& scalar) {
  float value = 0;
  std::memcpy(&value, scalar.value.data(), sizeof value);
  return value;
}

class CublasClientTest : public testing::Test {
 protected:
  void SetUp() override {
    core_.Forget();
    ASSERT_EQ(cublasCreate(&handle_), CUBLAS_STATUS_SUCCESS);
  }
  void TearDown() override {
    core_.failure = cudaSuccess;
    EXPECT_EQ(cublasDestroy(handle_), CUBLAS_STATUS_SUCCESS);
    EXPECT_TRUE(core_.live.empty());
  }
  cublasStatus_t Scale(int n = 4) { return cublasSscal(handle_, n, &alpha_, Device<float>(0), 1); }

  FakeClientCore& core_ = FakeClientCore::Get();
  cublasHandle_t handle_ = nullptr;
  float alpha_ = 1.5f;
  float beta_ = 0.5f;
};

// Another library's captures and functions, as calls of cuBLAS meet them.
class FakeGate final : public StreamGate {
 public:
  bool IsCapturing(std::uint64_t) override { return is_capturing; }
  cudaError_t Capture(std::uint64_t, const Command& command,
                      std::shared_ptr<const void> needed) override {
    wire::Reader reader(command.fields);
    reader(captured.emplace_back());
    held.push_back(std::move(needed));
    return cudaSuccess;
  }
  cudaError_t Await(std::uint64_t stream) override {
    awaited.push_back(stream);
    sent_before = FakeClientCore::Get().sent.size();
    return answer;
  }

  bool is_capturing = false;
  std::vector<wire::CublasSscal> captured;
  std::vector<std::shared_ptr<const void>> held;
  std::vector<std::uint64_t> awaited;
  std::size_t sent_before = 0;
  cudaError_t answer = cudaSuccess;
};

TEST_F(CublasClientTest, CallsWaitForWhatTheirStreamIsStillToDoInTheClient) {
  FakeGate gate;
  core_.SetStreamGate(&gate);
  EXPECT_EQ(Scale(), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(gate.awaited, (std::vector<std::uint64_t>{0}));
  EXPECT_EQ(gate.sent_before, 0u);
  EXPECT_EQ(core_.sent.size(), 1u);
  gate.answer = cudaErrorStreamCaptureImplicit;
  float result = 0;
  EXPECT_EQ(Scale(), CUBLAS_STATUS_EXECUTION_FAILED);
  EXPECT_EQ(cublasSdot(handle_, 4, Device<float>(0), 1, Device<float>(64), 1, &result),
            CUBLAS_STATUS_EXECUTION_FAILED);
  EXPECT_EQ(core_.sent.size(), 1u);
  core_.SetStreamGate(nullptr);
}

TEST_F(CublasClientTest, CapturedCallsKeepTheSettingsOfTheirCapture) {
  FakeGate gate;
  gate.is_capturing = true;
  core_.SetStreamGate(&gate);
  const auto handle_of_call = [&] {
    EXPECT_EQ(Scale(), CUBLAS_STATUS_SUCCESS);
    return gate.captured.back().handle;
  };
  cublasSetWorkspace(handle_, Device<void>(4096), 1024);
  const std::uint64_t first = handle_of_call();
  EXPECT_NE(first, reinterpret_cast<std::uint64_t>(handle_));
  EXPECT_TRUE(core_.live.contains(first));
  EXPECT_EQ(handle_of_call(), first);
  EXPECT_EQ(core_.settings, std::vector{wire::CublasSetWorkspace::kCallId}) << "once, for `first`";
  cublasSetMathMode(handle_, CUBLAS_PEDANTIC_MATH);
  const std::uint64_t pedantic = handle_of_call();
  EXPECT_NE(pedantic, first);
  cublasSetStream(handle_, cudaStreamPerThread);
  cublasSetWorkspace(handle_, Device<void>(4096), 1024);
  const std::uint64_t beside = handle_of_call();
  EXPECT_NE(beside, pedantic) << "they may run at once";
  cublasSetStream(handle_, nullptr);
  cublasSetWorkspace(handle_, Device<void>(4096), 1024);
  cublasSetMathMode(handle_, CUBLAS_DEFAULT_MATH);
  EXPECT_EQ(handle_of_call(), first);
  EXPECT_TRUE(core_.sent.empty());

  gate.held.resize(1);
  EXPECT_TRUE(core_.live.contains(first));
  EXPECT_FALSE(core_.live.contains(pedantic)) << "no graph has it any more";
  gate.held.clear();
  EXPECT_FALSE(core_.live.contains(first));
  core_.SetStreamGate(nullptr);
}

TEST_F(CublasClientTest, ACallCarriesItsArguments) {
  ASSERT_EQ(cublasSgemm(handle_, CUBLAS_OP_N, CUBLAS_OP_T, 4, 8, 2, &alpha_, Device<float>(0), 4,
                        Device<float>(256), 8, &beta_, Device<float>(1024), 5),
            CUBLAS_STATUS_SUCCESS);
  const auto gemm = core_.Only<wire::CublasSgemm>();
  EXPECT_EQ(gemm.handle, reinterpret_cast<std::uint64_t>(handle_));
  EXPECT_EQ(KindOf(gemm.handle), HandleKind::kCublas);
  EXPECT_EQ(gemm.transb, CUBLAS_OP_T);
  EXPECT_EQ(gemm.m, 4);
  EXPECT_EQ(gemm.n, 8);
  EXPECT_EQ(gemm.k, 2);
  EXPECT_EQ(FloatOf(gemm.alpha), 1.5f);
  EXPECT_EQ(FloatOf(gemm.beta), 0.5f);
  EXPECT_EQ(gemm.C, 0x2000'0000'0400u);
  EXPECT_EQ(gemm.ldc, 5);
}

TEST_F(CublasClientTest, ArraysOfAddressesAreSentAsTheirs) {
  int info = -1;
  ASSERT_EQ(cublasSgetrsBatched(handle_, CUBLAS_OP_N, 3, 1, Device<const float* const>(64), 3,
                                nullptr, Device<float* const>(128), 3, &info, 2),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(info, 0) << "told at once";
  const auto solve = core_.Only<wire::CublasSgetrsBatched>();
  EXPECT_EQ(solve.Aarray, 0x2000'0000'0040u);
  EXPECT_EQ(solve.devIpiv, 0u);
  EXPECT_EQ(solve.batchSize, 2);
  EXPECT_EQ(cublasSgetrsBatched(handle_, CUBLAS_OP_N, 3, 1, Device<const float* const>(64), 3,
                                nullptr, Device<float* const>(128), 3, nullptr, 2),
            CUBLAS_STATUS_INVALID_VALUE);
}

TEST_F(CublasClientTest, AResultOfAnyTypeIsFetched) {
  wire::CublasDotExToHostResult answer;
  const std::uint16_t half = 0x3c00;
  std::memcpy(answer.result.data(), &half, sizeof half);
  core_.reply.result = wire::Encoded(answer);
  std::uint16_t results[2] = {0, 7};
  ASSERT_EQ(cublasDotEx(handle_, 4, Device<float>(0), CUDA_R_16F, 1, Device<float>(0), CUDA_R_16F,
                        1, results, CUDA_R_16F, CUDA_R_32F),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(results[0], half);
  EXPECT_EQ(results[1], 7) << "no more than its bytes";
}

TEST_F(CublasClientTest, TheLoggerIsRemembered) {
  const cublasLogCallback log = [](const char*) {};
  ASSERT_EQ(cublasSetLoggerCallback(log), CUBLAS_STATUS_SUCCESS);
  cublasLogCallback found = nullptr;
  ASSERT_EQ(cublasGetLoggerCallback(&found), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(found, log);
}

TEST_F(CublasClientTest, DevicePointerModeSendsAddresses) {
  ASSERT_EQ(cublasSetPointerMode(handle_, CUBLAS_POINTER_MODE_DEVICE), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cublasSscal(handle_, 4, Device<float>(64), Device<float>(0), 1), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(core_.Only<wire::CublasSscal>().alpha.address, 0x2000'0000'0040u);
  EXPECT_TRUE(core_.settings.empty()) << "the pointer mode itself is never sent";
}

TEST_F(CublasClientTest, AResultForTheHostIsFetched) {
  wire::CublasSdotToHostResult answer;
  const float expected = 2.5f;
  std::memcpy(answer.result.data(), &expected, sizeof expected);
  wire::Writer{core_.reply.result}(answer);
  float result = 0;
  ASSERT_EQ(cublasSdot(handle_, 4, Device<float>(0), 1, Device<float>(64), 1, &result),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(core_.Only<wire::CublasSdotToHost>().n, 4);
  EXPECT_EQ(result, expected);
}

TEST_F(CublasClientTest, AWideIndexIsFilledFromTheNarrowOne) {
  wire::CublasIsamaxToHostResult answer;
  const int expected = 3;
  std::memcpy(answer.result.data(), &expected, sizeof expected);
  wire::Writer{core_.reply.result}(answer);
  std::int64_t result = -1;
  ASSERT_EQ(cublasIsamax_64(handle_, 4, Device<float>(0), 1, &result), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(result, expected);
  cublasSetPointerMode(handle_, CUBLAS_POINTER_MODE_DEVICE);
  EXPECT_EQ(cublasIsamax_64(handle_, 4, Device<float>(0), 1, Device<std::int64_t>(64)),
            CUBLAS_STATUS_NOT_SUPPORTED);
}

TEST_F(CublasClientTest, TheCallsOwnErrorComesBack) {
  core_.reply.status = CUBLAS_STATUS_EXECUTION_FAILED;
  float result = 7;
  EXPECT_EQ(cublasSdot(handle_, 4, Device<float>(0), 1, Device<float>(64), 1, &result),
            CUBLAS_STATUS_EXECUTION_FAILED);
  EXPECT_EQ(result, 7);
}

TEST_F(CublasClientTest, WideSizesAreCheckedAndNarrowed) {
  EXPECT_EQ(cublasSscal_64(handle_, 4, &alpha_, Device<float>(0), 1), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(core_.Only<wire::CublasSscal>().n, 4);
  EXPECT_EQ(cublasSscal_64(handle_, std::int64_t{1} << 31, &alpha_, Device<float>(0), 1),
            CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(core_.sent.size(), 1u);
}

// As cuBLAS does, before the pointers are looked at.
TEST_F(CublasClientTest, WhatIsWrongWithAProductIsSaidOnStdout) {
  testing::internal::CaptureStdout();
  EXPECT_EQ(cublasSgemm(handle_, CUBLAS_OP_N, CUBLAS_OP_N, -1, 8, 2, nullptr, nullptr, 4, nullptr,
                        8, nullptr, nullptr, 4),
            CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(cublasDgemm(handle_, CUBLAS_OP_T, CUBLAS_OP_N, 4, 8, 2, nullptr, nullptr, 1, nullptr, 8,
                        nullptr, nullptr, 4),
            CUBLAS_STATUS_INVALID_VALUE);
  std::fflush(stdout);
  EXPECT_EQ(testing::internal::GetCapturedStdout(),
            " ** On entry to SGEMM  parameter number 3 had an illegal value\n"
            " ** On entry to DGEMM  parameter number 8 had an illegal value\n");
  EXPECT_TRUE(core_.sent.empty());
}

TEST_F(CublasClientTest, InvalidArgumentsAreRefusedAtTheCall) {
  EXPECT_EQ(cublasSgemm(handle_, CUBLAS_OP_N, CUBLAS_OP_N, -1, 8, 2, &alpha_, Device<float>(0), 4,
                        Device<float>(0), 8, &beta_, Device<float>(0), 4),
            CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(cublasSgemm(handle_, CUBLAS_OP_N, CUBLAS_OP_N, 4, 8, 2, &alpha_, Device<float>(0), 3,
                        Device<float>(0), 8, &beta_, Device<float>(0), 4),
            CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(cublasSscal(handle_, 4, nullptr, Device<float>(0), 1), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(cublasSscal(nullptr, 4, &alpha_, Device<float>(0), 1), CUBLAS_STATUS_NOT_INITIALIZED);
  EXPECT_TRUE(core_.sent.empty());
}

TEST_F(CublasClientTest, ScalarsOfTheExFunctionsHaveTheComputeType) {
  const double alpha = 2.25, beta = 0;
  ASSERT_EQ(cublasGemmEx(handle_, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &alpha, Device<void>(0),
                         CUDA_R_64F, 2, Device<void>(64), CUDA_R_64F, 2, &beta, Device<void>(128),
                         CUDA_R_64F, 2, CUBLAS_COMPUTE_64F, CUBLAS_GEMM_DEFAULT),
            CUBLAS_STATUS_SUCCESS);
  double sent = 0;
  std::memcpy(&sent, core_.Only<wire::CublasGemmEx>().alpha.value.data(), sizeof sent);
  EXPECT_EQ(sent, alpha);
}

TEST_F(CublasClientTest, SettingsAreSentOnceAndOnlyWhenACallNeedsThem) {
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(cublasSetStream(handle_, cudaStreamPerThread), CUBLAS_STATUS_SUCCESS);
    ASSERT_EQ(cublasSetWorkspace(handle_, Device<void>(4096), 1024), CUBLAS_STATUS_SUCCESS);
    ASSERT_EQ(cublasSetMathMode(handle_, CUBLAS_TF32_TENSOR_OP_MATH), CUBLAS_STATUS_SUCCESS);
    ASSERT_EQ(core_.settings.size(), i == 0 ? 0u : 3u);
    ASSERT_EQ(Scale(), CUBLAS_STATUS_SUCCESS);
  }
  EXPECT_EQ(core_.settings,
            (std::vector{wire::CublasSetStream::kCallId, wire::CublasSetWorkspace::kCallId,
                         wire::CublasSetMathMode::kCallId}));
}

TEST_F(CublasClientTest, ThePerThreadStreamIsTheCallingThreads) {
  ASSERT_EQ(cublasSetStream(handle_, cudaStreamPerThread), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(Scale(), CUBLAS_STATUS_SUCCESS);
  ++core_.per_thread_stream;  // as on another thread
  ASSERT_EQ(Scale(), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(core_.settings,
            (std::vector{wire::CublasSetStream::kCallId, wire::CublasSetStream::kCallId}));
}

TEST_F(CublasClientTest, AnotherStreamMeansTheDefaultWorkspaceUntilOneIsSetAgain) {
  cublasSetWorkspace(handle_, Device<void>(4096), 1024);
  Scale();
  cublasSetStream(handle_, cudaStreamPerThread);
  Scale();
  cublasSetWorkspace(handle_, Device<void>(4096), 1024);
  Scale();
  EXPECT_EQ(core_.settings,
            (std::vector{wire::CublasSetWorkspace::kCallId, wire::CublasSetStream::kCallId,
                         wire::CublasSetWorkspace::kCallId}));
}

TEST_F(CublasClientTest, TheSameStreamAgainStillDropsTheWorkspace) {
  cublasSetWorkspace(handle_, Device<void>(4096), 1024);
  Scale();
  cublasSetStream(handle_, nullptr);
  Scale();
  EXPECT_EQ(core_.settings,
            (std::vector{wire::CublasSetWorkspace::kCallId, wire::CublasSetWorkspace::kCallId}));
}

TEST_F(CublasClientTest, SettingsAreReadBackFromTheClient) {
  cublasSetAtomicsMode(handle_, CUBLAS_ATOMICS_ALLOWED);
  cublasSetStream(handle_, cudaStreamPerThread);
  cublasAtomicsMode_t atomics = CUBLAS_ATOMICS_NOT_ALLOWED;
  cudaStream_t stream = nullptr;
  cublasMath_t math = CUBLAS_PEDANTIC_MATH;
  int version = 0;
  EXPECT_EQ(cublasGetAtomicsMode(handle_, &atomics), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cublasGetStream(handle_, &stream), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cublasGetMathMode(handle_, &math), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cublasGetVersion(handle_, &version), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(atomics, CUBLAS_ATOMICS_ALLOWED);
  EXPECT_EQ(stream, cudaStreamPerThread);
  EXPECT_EQ(math, CUBLAS_DEFAULT_MATH);
  EXPECT_EQ(version, CUBLAS_VERSION);
  EXPECT_EQ(cublasGetMathMode(handle_, nullptr), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_TRUE(core_.sent.empty());
}

TEST_F(CublasClientTest, AStreamThatDoesNotLiveIsRefused) {
  EXPECT_EQ(cublasSetStream(handle_, Device<CUstream_st>(0)), CUBLAS_STATUS_INVALID_VALUE);
}

TEST_F(CublasClientTest, ACoreThatFailsIsACublasError) {
  core_.failure = cudaErrorMemoryAllocation;
  EXPECT_EQ(Scale(), CUBLAS_STATUS_ALLOC_FAILED);
  core_.failure = cudaErrorIllegalAddress;
  EXPECT_EQ(Scale(), CUBLAS_STATUS_EXECUTION_FAILED);
  core_.failure = cudaErrorNoDevice;
  cublasHandle_t other = nullptr;
  EXPECT_EQ(cublasCreate(&other), CUBLAS_STATUS_NOT_INITIALIZED);
}

TEST_F(CublasClientTest, WhatHasNoLineSaysSo) {
  EXPECT_EQ(cublasCherkEx(handle_, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, 1, 1, &alpha_, nullptr,
                          CUDA_C_32F, 1, &beta_, nullptr, CUDA_C_32F, 1),
            CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(core_.warnings, std::vector<std::string>{"cublasCherkEx"});
}

TEST_F(CublasClientTest, CallsGoToTheDeviceThatTheHandleWasCreatedOn) {
  FakeClientCore& second = FakeClientCore::BeginSecond();
  cublasHandle_t other = nullptr;
  ASSERT_EQ(cublasCreate(&other), CUBLAS_STATUS_SUCCESS);
  core_.MakeCurrent();
  EXPECT_EQ(cublasSscal(other, 4, &alpha_, Device<float>(0), 1), CUBLAS_STATUS_SUCCESS);
  EXPECT_TRUE(core_.sent.empty());
  EXPECT_EQ(second.sent.size(), 1u);
  // A stream belongs to its own device only.
  const std::uint64_t stream = core_.MintHandle(HandleKind::kStream);
  core_.live.insert(stream);
  const auto program_stream = reinterpret_cast<cudaStream_t>(stream);
  EXPECT_EQ(cublasSetStream(other, program_stream), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(cublasSetStream(handle_, program_stream), CUBLAS_STATUS_SUCCESS);
  core_.live.erase(stream);
  EXPECT_EQ(cublasDestroy(other), CUBLAS_STATUS_SUCCESS);
  EXPECT_TRUE(second.live.empty());
  core_.hello = {};
}

TEST_F(CublasClientTest, TheFirstDevicesGateIsForAll) {
  FakeGate gate;
  core_.SetStreamGate(&gate);
  FakeClientCore& second = FakeClientCore::BeginSecond();
  cublasHandle_t other = nullptr;
  ASSERT_EQ(cublasCreate(&other), CUBLAS_STATUS_SUCCESS);
  gate.is_capturing = true;
  EXPECT_EQ(cublasSscal(other, 4, &alpha_, Device<float>(0), 1), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(gate.captured.size(), 1u);
  EXPECT_EQ(second.live.size(), 2u) << "the graph's own handle is of the same device";
  core_.SetStreamGate(nullptr);
  gate.held.clear();
  EXPECT_EQ(cublasDestroy(other), CUBLAS_STATUS_SUCCESS);
  EXPECT_TRUE(second.live.empty());
  core_.hello = {};
}

}  // namespace
}  // namespace torpor::shim
