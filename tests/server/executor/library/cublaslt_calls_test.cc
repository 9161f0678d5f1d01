#include "server/executor/library/cublaslt_calls.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/server/executor/session/session_fixture.h"

namespace torpor::executor {
namespace {

// What the fake library was asked.
struct Asked {
  int questions = 0;
  int products = 0;
  const void* bias = nullptr;
  const void* c = nullptr;
  const cublasLtMatmulAlgo_t* algorithm = nullptr;
  std::uint64_t algorithm_mark = 0;
};
Asked asked;

CublasLtFunctions FakeLibrary() {
  CublasLtFunctions f;
  f.create = [](cublasLtHandle_t* handle) {
    return *handle = reinterpret_cast<cublasLtHandle_t>(&asked), CUBLAS_STATUS_SUCCESS;
  };
  f.destroy = [](cublasLtHandle_t) { return CUBLAS_STATUS_SUCCESS; };
  f.matmul = [](cublasLtHandle_t, cublasLtMatmulDesc_t, const void*, const void*,
                cublasLtMatrixLayout_t, const void*, cublasLtMatrixLayout_t, const void*,
                const void* c, cublasLtMatrixLayout_t, void*, cublasLtMatrixLayout_t,
                const cublasLtMatmulAlgo_t* algorithm, void*, size_t, cudaStream_t) {
    ++asked.products;
    asked.c = c;
    asked.algorithm = algorithm;
    if (algorithm != nullptr) asked.algorithm_mark = algorithm->data[0];
    return CUBLAS_STATUS_SUCCESS;
  };
  f.get_heuristic = [](cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                       cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                       cublasLtMatmulPreference_t, int, cublasLtMatmulHeuristicResult_t* results,
                       int* count) {
    ++asked.questions;
    for (std::uint64_t i = 0; i < 2; ++i) {
      results[i] = {};
      results[i].algo.data[0] = 100 + i;
      results[i].workspaceSize = 1024 * i;
    }
    *count = 2;
    return CUBLAS_STATUS_SUCCESS;
  };
  f.matmul_create = [](cublasLtMatmulDesc_t* descriptor, cublasComputeType_t, cudaDataType_t) {
    return *descriptor = nullptr, CUBLAS_STATUS_SUCCESS;
  };
  f.matmul_destroy = [](cublasLtMatmulDesc_t) { return CUBLAS_STATUS_SUCCESS; };
  f.matmul_set = [](cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t attribute,
                    const void* value, size_t) {
    if (attribute == CUBLASLT_MATMUL_DESC_BIAS_POINTER) {
      std::memcpy(&asked.bias, value, sizeof asked.bias);
    }
    return CUBLAS_STATUS_SUCCESS;
  };
  f.layout_create = [](cublasLtMatrixLayout_t* layout, cudaDataType, uint64_t, uint64_t, int64_t) {
    return *layout = nullptr, CUBLAS_STATUS_SUCCESS;
  };
  f.layout_destroy = [](cublasLtMatrixLayout_t) { return CUBLAS_STATUS_SUCCESS; };
  f.layout_set = [](cublasLtMatrixLayout_t, cublasLtMatrixLayoutAttribute_t, const void*, size_t) {
    return CUBLAS_STATUS_SUCCESS;
  };
  f.preference_create = [](cublasLtMatmulPreference_t* preference) {
    return *preference = nullptr, CUBLAS_STATUS_SUCCESS;
  };
  f.preference_destroy = [](cublasLtMatmulPreference_t) { return CUBLAS_STATUS_SUCCESS; };
  f.preference_set = [](cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t,
                        const void*, size_t) { return CUBLAS_STATUS_SUCCESS; };
  return f;
}

constexpr Bytes kMatrixBytes = Bytes{64} * 64 * sizeof(float);

class CublasLtCallsTest : public testing::Test {
 protected:
  CublasLtCallsTest() {
    asked = {};
    const LtMatrixLayout square{.rows = 64, .columns = 64, .leading = 64};
    wire::CublasLtProblem& problem = command_.problem;
    problem.a = problem.b = problem.c = problem.d = square;
    command_.A = base_;
    command_.B = base_ + kMatrixBytes;
    command_.C = command_.D = base_ + 2 * kMatrixBytes;
    command_.alpha.value[3] = command_.beta.value[3] = 0x3f;
  }
  std::int32_t Multiply() { return calls_.CublasLtMatmul(command_).code; }

  FakeSession s_;
  const std::uint64_t base_ = s_.identity.device_base;
  CublasLtLibrary library_{FakeLibrary()};
  StreamSet streams_{*s_.device};
  CublasLtCalls calls_{library_, streams_, *s_.memory};
  wire::CublasLtMatmul command_;
};

TEST_F(CublasLtCallsTest, EveryMatrixMustBeTheSessionsWhole) {
  EXPECT_EQ(Multiply(), CUBLAS_STATUS_SUCCESS);
  const std::uint64_t end = base_ + 4 * kMiB;  // of what is resident
  for (std::uint64_t* address : {&command_.A, &command_.B, &command_.C, &command_.D}) {
    const std::uint64_t good = *address;
    *address = end - kMatrixBytes + 4;
    EXPECT_EQ(Multiply(), CUBLAS_STATUS_INVALID_VALUE);
    *address = good;
  }
  command_.problem.a.batch_count = command_.problem.b.batch_count = 2;
  command_.problem.c.batch_count = command_.problem.d.batch_count = 2;
  command_.problem.b.batch_stride = std::int64_t{1} << 62;
  EXPECT_EQ(Multiply(), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(asked.products, 1);
}

TEST_F(CublasLtCallsTest, WhatAnEpilogueReachesIsCheckedToo) {
  command_.problem.matmul.epilogue = CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
  command_.problem.matmul.bias = base_;
  command_.problem.matmul.aux = base_ + 4 * kMiB - 16;
  command_.problem.matmul.aux_leading = 64;
  EXPECT_EQ(Multiply(), CUBLAS_STATUS_INVALID_VALUE);
  command_.problem.matmul.aux = base_ + kMatrixBytes;
  EXPECT_EQ(Multiply(), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(asked.bias, reinterpret_cast<const void*>(base_));
  command_.problem.matmul.bias = 0x1000;
  EXPECT_EQ(Multiply(), CUBLAS_STATUS_INVALID_VALUE);
}

TEST_F(CublasLtCallsTest, WithABetaOfZeroNobodyLooksAtC) {
  command_.beta = {};
  command_.C = 0;
  EXPECT_EQ(Multiply(), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(asked.c, nullptr);
}

TEST_F(CublasLtCallsTest, ScalarsLieWhereThePointerModeSays) {
  command_.problem.matmul.pointer_mode = CUBLASLT_POINTER_MODE_DEVICE;
  EXPECT_EQ(Multiply(), CUBLAS_STATUS_INVALID_VALUE);
  command_.alpha.address = command_.beta.address = base_;
  EXPECT_EQ(Multiply(), CUBLAS_STATUS_SUCCESS);
  command_.beta.address = 4;
  EXPECT_EQ(Multiply(), CUBLAS_STATUS_INVALID_VALUE);
}

TEST_F(CublasLtCallsTest, AnAlgorithmIsTheLibrarysOwnAnswer) {
  wire::CublasLtMatmulHeuristic question;
  question.problem = command_.problem;
  question.requested = 3;
  wire::CublasLtMatmulHeuristicResult result;
  ASSERT_TRUE(calls_.CublasLtMatmulHeuristic(question, result).ok());
  ASSERT_EQ(result.answers.size(), 2u);
  EXPECT_EQ(result.answers[1].workspace_bytes, 1024u);

  command_.algorithm.requested = 3;
  command_.algorithm.place = 1;
  EXPECT_EQ(Multiply(), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(asked.algorithm, nullptr) << "it needs a larger workspace";
  command_.workspace = base_;
  command_.workspace_bytes = 1024;
  EXPECT_EQ(Multiply(), CUBLAS_STATUS_SUCCESS);
  ASSERT_NE(asked.algorithm, nullptr);
  EXPECT_EQ(asked.algorithm_mark, 101u);
  EXPECT_EQ(asked.questions, 1) << "the same question";
  command_.algorithm.place = 2;
  EXPECT_EQ(Multiply(), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(asked.algorithm, nullptr);
}

TEST_F(CublasLtCallsTest, WithoutALibraryItSaysSo) {
  CublasLtLibrary none{CublasLtFunctions()};
  CublasLtCalls calls(none, streams_, *s_.memory);
  EXPECT_EQ(calls.CublasLtMatmul(command_).code, CUBLAS_STATUS_NOT_INITIALIZED);
}

}  // namespace
}  // namespace torpor::executor
