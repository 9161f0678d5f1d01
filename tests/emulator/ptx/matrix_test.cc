#include "emulator/ptx/matrix.h"

#include <gtest/gtest.h>

namespace torpor::ptx {
namespace {

TEST(Matrix, AProductNamesItsShapeLayoutsAndTypes) {
  const auto matrix = DecodeMatrix("mma.sync.aligned.m16n8k32.row.col.satfinite.s32.u8.s8.s32");
  ASSERT_TRUE(matrix);
  EXPECT_FALSE(matrix->wmma);
  EXPECT_EQ(matrix->m, 16U);
  EXPECT_EQ(matrix->n, 8U);
  EXPECT_EQ(matrix->k, 32U);
  EXPECT_TRUE(matrix->b_column);
  EXPECT_TRUE(matrix->saturates);
  EXPECT_EQ(matrix->a, Type::kU8);
  EXPECT_EQ(matrix->b, Type::kS8);
  EXPECT_EQ(matrix->registers(MatrixPart::kA), 4U);
  EXPECT_EQ(matrix->registers(MatrixPart::kB), 2U);
  EXPECT_EQ(matrix->registers(MatrixPart::kC), 4U);
}

TEST(Matrix, WmmaKeepsElementsOfHalvesSeveralTimes) {
  const auto matrix = DecodeMatrix("wmma.mma.sync.aligned.col.row.m32n8k16.f16.f32");
  ASSERT_TRUE(matrix);
  EXPECT_TRUE(matrix->a_column);
  EXPECT_EQ(matrix->a, Type::kF16);
  EXPECT_EQ(matrix->registers(MatrixPart::kB), 8U);
  EXPECT_EQ(matrix->distinct_registers(MatrixPart::kB), 2U);
  EXPECT_EQ(matrix->registers(MatrixPart::kD), 4U);
  EXPECT_EQ(matrix->registers(MatrixPart::kC), 8U);
}

TEST(Matrix, LoadsAndStoresNameAPart) {
  const auto load = DecodeMatrix("wmma.load.b.sync.aligned.col.m8n8k4.shared.f64");
  ASSERT_TRUE(load);
  EXPECT_EQ(load->action, MatrixInstruction::Action::kLoad);
  EXPECT_EQ(load->part, MatrixPart::kB);
  EXPECT_TRUE(load->column);
  EXPECT_EQ(load->rows(MatrixPart::kB), 4U);
  EXPECT_EQ(load->register_bits(MatrixPart::kB), 64U);
  EXPECT_TRUE(DecodeMatrix("wmma.store.d.sync.aligned.row.m16n16k16.f16"));
}

TEST(Matrix, WhatPtxDoesNotHaveIsRefused) {
  for (const char* spelling :
       {"wmma", "mma", "wmma.load", "wmma.load.d.sync.aligned.row.m16n16k16.f32",
        "wmma.store.a.sync.aligned.row.m16n16k16.f16", "wmma.load.a.sync.aligned.m16n16k16.f16",
        "wmma.load.a.sync.aligned.row.m16n16k8.f16", "wmma.load.a.sync.aligned.col.m8n8k32.s4",
        "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f16.f16",
        "wmma.mma.sync.aligned.row.col.m16n16k16.s32.s8.u4.s32",
        "mma.sync.aligned.m16n8k16.row.row.f32.f16.f16.f32",
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32",
        "mma.sync.aligned.m16n8k16.row.col.bf16.bf16.bf16.f32",
        "mma.sync.aligned.m16n8k4294967312.row.col.f32.f16.f16.f32",
        "mma.sync.aligned.m16n8.row.col.f32.f16.f16.f32",
        "mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32",
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32.xor.popc",
        "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"}) {
    EXPECT_FALSE(DecodeMatrix(spelling)) << spelling;
  }
}

}  // namespace
}  // namespace torpor::ptx
