#include "proto/cuda_api/cublaslt_problem.h"

#include <gtest/gtest.h>

namespace torpor::wire {
namespace {

CublasLtProblem Problem() {
  CublasLtProblem p;
  p.a = {.rows = 3, .columns = 5, .leading = 4};
  p.b = {.order = CUBLASLT_ORDER_ROW, .rows = 5, .columns = 7, .leading = 8};
  p.c = p.d = {.type = CUDA_R_32F, .rows = 3, .columns = 7, .leading = 3};
  return p;
}

TEST(CublasLtProblemTest, ExtentsFollowTheOrder) {
  const CublasLtProblem p = Problem();
  ASSERT_TRUE(LtProblemIsValid(p));
  EXPECT_EQ(LtLayoutBytes(p.a), (4u * 4 + 3) * 4);
  EXPECT_EQ(LtLayoutBytes(p.b), (8u * 4 + 7) * 4);
  LtMatrixLayout batch = p.a;
  batch.batch_count = 3;
  batch.batch_stride = 100;
  EXPECT_EQ(LtLayoutBytes(batch), (200u + 4 * 4 + 3) * 4);
  batch.batch_stride = std::int64_t{1} << 62;
  EXPECT_EQ(LtLayoutBytes(batch), kEndless);
}

TEST(CublasLtProblemTest, ShapesMustAgree) {
  CublasLtProblem p = Problem();
  p.matmul.transa = CUBLAS_OP_T;
  EXPECT_FALSE(LtProblemIsValid(p));
  p = Problem();
  p.c.batch_count = 2;
  EXPECT_FALSE(LtProblemIsValid(p));
  p = Problem();
  p.d.leading = 2;
  EXPECT_FALSE(LtProblemIsValid(p));
}

TEST(CublasLtProblemTest, EpiloguesReachVectorsAndMatrices) {
  CublasLtProblem p = Problem();
  EXPECT_EQ(LtBiasBytes(p), 0u);
  EXPECT_EQ(LtAuxBytes(p), 0u);
  p.matmul.epilogue = CUBLASLT_EPILOGUE_RELU_AUX_BIAS;
  p.matmul.bias_type = CUDA_R_16F;
  p.matmul.aux_leading = 128;
  ASSERT_TRUE(LtProblemIsValid(p));
  EXPECT_EQ(LtBiasBytes(p), 6u);
  EXPECT_EQ(LtAuxBytes(p), 16u * 6 + 1);
  p.matmul.epilogue = CUBLASLT_EPILOGUE_BGRADB;
  EXPECT_EQ(LtBiasBytes(p), 14u);
  EXPECT_TRUE(LtBiasIsWritten(p.matmul));
  p.matmul.epilogue = CUBLASLT_EPILOGUE_DGELU;
  p.matmul.aux_leading = 8;
  EXPECT_EQ(LtAuxBytes(p), (8u * 6 + 3) * 4);
  p.matmul.aux_leading = 4;
  EXPECT_FALSE(LtProblemIsValid(p));
  p.matmul.epilogue = 3;
  EXPECT_FALSE(LtProblemIsValid(p));
}

TEST(CublasLtProblemTest, AQuestionKnowsAlignmentsOnly) {
  CublasLtProblem p = Problem();
  p.matmul.bias = 0x1000'0010;
  p.matmul.aux = 0x1000'4000;
  const CublasLtProblem question = LtWithoutAddresses(p);
  EXPECT_EQ(question.matmul.bias, 16u);
  EXPECT_EQ(question.matmul.aux, 256u);
  EXPECT_EQ(question.matmul.a_scale, 0u);
}

}  // namespace
}  // namespace torpor::wire
