#include <cublasLt.h>
#include <gtest/gtest.h>

#include <cstring>

#include "proto/cuda_api/cublaslt_commands.h"
#include "tests/client_shim/surface/fake_client_core.h"

extern "C" torpor::shim::ClientCore* torpor_client_core() {
  return &torpor::shim::FakeClientCore::Current();
}

namespace torpor::shim {
namespace {

void* Device(std::uint64_t offset) { return reinterpret_cast<void*>(0x2000'0000'0000 + offset); }

class CublasLtClientTest : public testing::Test {
 protected:
  void SetUp() override {
    core_.Forget();
    // Each test asks questions of its own.
    ASSERT_EQ(cublasLtHeuristicsCacheSetCapacity(0), CUBLAS_STATUS_SUCCESS);
    ASSERT_EQ(cublasLtHeuristicsCacheSetCapacity(16), CUBLAS_STATUS_SUCCESS);
    ASSERT_EQ(cublasLtCreate(&handle_), CUBLAS_STATUS_SUCCESS);
    ASSERT_EQ(cublasLtMatmulDescInit(&matmul_, CUBLAS_COMPUTE_32F, CUDA_R_32F),
              CUBLAS_STATUS_SUCCESS);
    cublasLtMatrixLayoutInit(&a_, CUDA_R_16F, 4, 2, 4);
    cublasLtMatrixLayoutInit(&b_, CUDA_R_16F, 2, 8, 2);
    cublasLtMatrixLayoutInit(&d_, CUDA_R_16F, 4, 8, 5);
  }
  void TearDown() override {
    core_.failure = cudaSuccess;
    EXPECT_EQ(cublasLtDestroy(handle_), CUBLAS_STATUS_SUCCESS);
  }

  template <typename T>
  void Set(cublasLtMatmulDescAttributes_t attribute, T value) {
    ASSERT_EQ(cublasLtMatmulDescSetAttribute(&matmul_, attribute, &value, sizeof value),
              CUBLAS_STATUS_SUCCESS);
  }
  cublasStatus_t Multiply(const cublasLtMatmulAlgo_t* algo = nullptr) {
    return cublasLtMatmul(handle_, &matmul_, &alpha_, Device(0), &a_, Device(64), &b_, &beta_,
                          Device(128), &d_, Device(256), &d_, algo, Device(512), 1024, nullptr);
  }
  cublasStatus_t Ask(int* returned) {
    return cublasLtMatmulAlgoGetHeuristic(handle_, &matmul_, &a_, &b_, &d_, &d_, nullptr, 4,
                                          results_, returned);
  }
  void AnswerWith(std::vector<wire::CublasLtAnswer> answers) {
    core_.reply.result = wire::Encoded(wire::CublasLtMatmulHeuristicResult{std::move(answers)});
  }

  FakeClientCore& core_ = FakeClientCore::Get();
  cublasLtHandle_t handle_ = nullptr;
  cublasLtMatmulDescOpaque_t matmul_{};
  cublasLtMatrixLayoutOpaque_t a_{};
  cublasLtMatrixLayoutOpaque_t b_{};
  cublasLtMatrixLayoutOpaque_t d_{};
  cublasLtMatmulHeuristicResult_t results_[4] = {};
  float alpha_ = 1.5f;
  float beta_ = 0.5f;
};

TEST_F(CublasLtClientTest, ADescriptorTravelsByValue) {
  Set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_GELU_BIAS);
  Set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, Device(32));
  ASSERT_EQ(Multiply(), CUBLAS_STATUS_SUCCESS);
  const auto sent = core_.Only<wire::CublasLtMatmul>();
  EXPECT_EQ(sent.problem.matmul.epilogue, CUBLASLT_EPILOGUE_GELU_BIAS);
  EXPECT_EQ(sent.problem.matmul.bias, 0x2000'0000'0020u);
  EXPECT_EQ(sent.problem.b.columns, 8u);
  EXPECT_EQ(sent.problem.d.leading, 5);
  EXPECT_EQ(sent.D, 0x2000'0000'0100u);
  EXPECT_EQ(sent.workspace_bytes, 1024u);
  float beta = 0;
  std::memcpy(&beta, sent.beta.value.data(), sizeof beta);
  EXPECT_EQ(beta, 0.5f);
  EXPECT_EQ(sent.algorithm.requested, 0u) << "the library's own choice";
}

TEST_F(CublasLtClientTest, ShapesThatDoNotFitAreRefusedAtOnce) {
  cublasLtMatrixLayoutInit(&b_, CUDA_R_16F, 3, 8, 3);
  EXPECT_EQ(Multiply(), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_TRUE(core_.sent.empty());
}

TEST_F(CublasLtClientTest, WhatCannotBeSentIsNamed) {
  Set(CUBLASLT_MATMUL_DESC_POINTER_MODE, CUBLASLT_POINTER_MODE_DEVICE_VECTOR);
  EXPECT_EQ(Multiply(), CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(core_.warnings, std::vector<std::string>{"cublasLtMatmul"});
}

TEST_F(CublasLtClientTest, AHeuristicIsAskedOnce) {
  AnswerWith({{CUBLAS_STATUS_SUCCESS, 0.5f, 4096}, {CUBLAS_STATUS_SUCCESS, 1, 0}});
  int returned = 0;
  Set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, Device(512));
  ASSERT_EQ(Ask(&returned), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(returned, 2);
  EXPECT_EQ(results_[0].workspaceSize, 4096u);
  Set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, Device(1024));
  ASSERT_EQ(Ask(&returned), CUBLAS_STATUS_SUCCESS) << "another bias, aligned as well";
  EXPECT_EQ(core_.sent.size(), 1u);

  core_.sent.clear();
  ASSERT_EQ(Multiply(&results_[1].algo), CUBLAS_STATUS_SUCCESS);
  const auto sent = core_.Only<wire::CublasLtMatmul>();
  EXPECT_EQ(sent.algorithm.requested, 4u);
  EXPECT_EQ(sent.algorithm.place, 1u);
  core_.sent.clear();
  cublasLtMatmulHeuristicResult_t checked{};
  ASSERT_EQ(
      cublasLtMatmulAlgoCheck(handle_, &matmul_, &a_, &b_, &d_, &d_, &results_[0].algo, &checked),
      CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(checked.workspaceSize, 4096u);
}

TEST_F(CublasLtClientTest, ARefusalIsRemembered) {
  core_.reply.status = CUBLAS_STATUS_NOT_SUPPORTED;
  int returned = 7;
  EXPECT_EQ(Ask(&returned), CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(returned, 0);
  EXPECT_EQ(Ask(&returned), CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(core_.sent.size(), 1u);
}

TEST_F(CublasLtClientTest, AnAlgorithmOfNobodyIsTheLibrarysChoice) {
  const cublasLtMatmulAlgo_t made_up{{1, 2, 3}};
  ASSERT_EQ(Multiply(&made_up), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(core_.Only<wire::CublasLtMatmul>().algorithm.requested, 0u);
}

TEST_F(CublasLtClientTest, OnlyLiveHandlesServe) {
  const auto destroyed = handle_;
  ASSERT_EQ(cublasLtDestroy(handle_), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(Multiply(), CUBLAS_STATUS_NOT_INITIALIZED);
  EXPECT_EQ(cublasLtDestroy(destroyed), CUBLAS_STATUS_NOT_INITIALIZED);
  // One of cuBLAS serves as well.
  const std::uint64_t cublas = core_.MintHandle(HandleKind::kCublas);
  core_.live.insert(cublas);
  handle_ = reinterpret_cast<cublasLtHandle_t>(cublas);
  EXPECT_EQ(Multiply(), CUBLAS_STATUS_SUCCESS);
  core_.live.erase(cublas);
  EXPECT_EQ(Multiply(), CUBLAS_STATUS_NOT_INITIALIZED);
  ASSERT_EQ(cublasLtCreate(&handle_), CUBLAS_STATUS_SUCCESS);
}

TEST_F(CublasLtClientTest, CallsAndQuestionsGoToTheHandlesDevice) {
  AnswerWith({{CUBLAS_STATUS_SUCCESS, 0.5f, 4096}});
  int returned = 0;
  ASSERT_EQ(Ask(&returned), CUBLAS_STATUS_SUCCESS);
  FakeClientCore& second = FakeClientCore::BeginSecond();
  second.reply = core_.reply;
  const cublasLtHandle_t first_handle = handle_;
  ASSERT_EQ(cublasLtCreate(&handle_), CUBLAS_STATUS_SUCCESS);
  core_.MakeCurrent();
  EXPECT_EQ(Ask(&returned), CUBLAS_STATUS_SUCCESS) << "each device is asked";
  EXPECT_EQ(Multiply(), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(second.sent.size(), 2u);
  EXPECT_EQ(cublasLtDestroy(handle_), CUBLAS_STATUS_SUCCESS);
  // One of cuBLAS is of a device as well.
  const std::uint64_t cublas = second.MintHandle(HandleKind::kCublas);
  second.live.insert(cublas);
  handle_ = reinterpret_cast<cublasLtHandle_t>(cublas);
  EXPECT_EQ(Multiply(), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(second.sent.size(), 3u);
  EXPECT_EQ(core_.sent.size(), 1u);
  second.live.erase(cublas);
  handle_ = first_handle;
  core_.hello = {};
}

}  // namespace
}  // namespace torpor::shim
