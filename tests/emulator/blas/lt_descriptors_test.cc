#include <cublasLt.h>
#include <gtest/gtest.h>

namespace torpor::emulator {
namespace {

TEST(LtDescriptorsTest, AttributesAreKept) {
  cublasLtMatmulDesc_t matmul = nullptr;
  ASSERT_EQ(cublasLtMatmulDescCreate(&matmul, CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F),
            CUBLAS_STATUS_SUCCESS);
  const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
  ASSERT_EQ(cublasLtMatmulDescSetAttribute(matmul, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue,
                                           sizeof epilogue),
            CUBLAS_STATUS_SUCCESS);
  cublasLtEpilogue_t kept = CUBLASLT_EPILOGUE_DEFAULT;
  std::size_t written = 0;
  ASSERT_EQ(cublasLtMatmulDescGetAttribute(matmul, CUBLASLT_MATMUL_DESC_EPILOGUE, &kept,
                                           sizeof kept, &written),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(kept, epilogue);
  EXPECT_EQ(written, sizeof kept);
  cublasComputeType_t compute{};
  ASSERT_EQ(cublasLtMatmulDescGetAttribute(matmul, CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, &compute,
                                           sizeof compute, nullptr),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(compute, CUBLAS_COMPUTE_32F_FAST_TF32);
  EXPECT_EQ(cublasLtMatmulDescDestroy(matmul), CUBLAS_STATUS_SUCCESS);
}

TEST(LtDescriptorsTest, ADescriptorMayLieOnTheStack) {
  cublasLtMatrixLayoutOpaque_t layout;
  ASSERT_EQ(cublasLtMatrixLayoutInit(&layout, CUDA_R_16F, 7, 5, 8), CUBLAS_STATUS_SUCCESS);
  std::uint64_t rows = 0;
  ASSERT_EQ(cublasLtMatrixLayoutGetAttribute(&layout, CUBLASLT_MATRIX_LAYOUT_ROWS, &rows,
                                             sizeof rows, nullptr),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(rows, 7u);
  cublasLtMatmulPreferenceOpaque_t preference;
  ASSERT_EQ(cublasLtMatmulPreferenceInit(&preference), CUBLAS_STATUS_SUCCESS);
  const std::size_t most = 1 << 20;
  EXPECT_EQ(cublasLtMatmulPreferenceSetAttribute(
                &preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most, sizeof most),
            CUBLAS_STATUS_SUCCESS);
}

TEST(LtDescriptorsTest, SizesMustBeTheAttributesOwn) {
  cublasLtMatrixLayoutOpaque_t layout;
  ASSERT_EQ(cublasLtMatrixLayoutInit(&layout, CUDA_R_16F, 7, 5, 8), CUBLAS_STATUS_SUCCESS);
  const std::int64_t order = CUBLASLT_ORDER_ROW;
  EXPECT_EQ(
      cublasLtMatrixLayoutSetAttribute(&layout, CUBLASLT_MATRIX_LAYOUT_ORDER, &order, sizeof order),
      CUBLAS_STATUS_INVALID_VALUE);
  std::size_t needed = 0;
  EXPECT_EQ(
      cublasLtMatrixLayoutGetAttribute(&layout, CUBLASLT_MATRIX_LAYOUT_LD, nullptr, 0, &needed),
      CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(needed, sizeof(std::int64_t));
  char narrow = 0;
  EXPECT_EQ(cublasLtMatrixLayoutGetAttribute(&layout, CUBLASLT_MATRIX_LAYOUT_LD, &narrow,
                                             sizeof narrow, nullptr),
            CUBLAS_STATUS_INVALID_VALUE);
}

TEST(LtDescriptorsTest, WhatWasNeverMadeIsRefused) {
  cublasLtMatrixLayoutOpaque_t layout{};
  const std::uint64_t rows = 1;
  EXPECT_EQ(
      cublasLtMatrixLayoutSetAttribute(&layout, CUBLASLT_MATRIX_LAYOUT_ROWS, &rows, sizeof rows),
      CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(cublasLtMatmulDescSetAttribute(nullptr, CUBLASLT_MATMUL_DESC_EPILOGUE, &rows, 4),
            CUBLAS_STATUS_INVALID_VALUE);
}

}  // namespace
}  // namespace torpor::emulator
