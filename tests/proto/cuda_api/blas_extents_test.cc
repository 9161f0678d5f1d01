#include "proto/cuda_api/blas_extents.h"

#include <gtest/gtest.h>

namespace torpor::wire {
namespace {

constexpr std::int32_t kBig = std::numeric_limits<std::int32_t>::max();

TEST(BlasExtentsTest, AMatrixEndsWithItsLastColumnNotWithItsLeadingDimension) {
  EXPECT_EQ(MatrixBytes(4, 3, 5, 8), (8u * 4 + 3) * 4);
  EXPECT_EQ(MatrixBytes(8, 3, 1, 8), 3u * 8);
  EXPECT_EQ(MatrixBytes(8, 0, 5, 8), 0u);
  EXPECT_EQ(MatrixBytes(8, 3, 0, 8), 0u);
}

TEST(BlasExtentsTest, ABatchReachesToTheEndOfItsLastMatrix) {
  EXPECT_EQ(BatchBytes(4, 2, 2, 2, 100, 3), (2u * 100 + 4) * 4);
  EXPECT_EQ(BatchBytes(4, 2, 2, 2, 0, 3), 16u);  // the same matrix again and again
  EXPECT_EQ(BatchBytes(4, 2, 2, 2, 100, 0), 0u);
}

TEST(BlasExtentsTest, AVectorReachesAsFarBackwards) {
  EXPECT_EQ(VectorBytes(4, 5, 3), (4u * 3 + 1) * 4);
  EXPECT_EQ(VectorBytes(4, 5, -3), (4u * 3 + 1) * 4);
  EXPECT_EQ(VectorBytes(4, 5, 0), 4u);
  EXPECT_EQ(VectorBytes(4, 0, 3), 0u);
  EXPECT_EQ(VectorBytes(4, -5, 3), 0u);
}

TEST(BlasExtentsTest, BandsAndPackedHalves) {
  EXPECT_EQ(BandRows(2, 3), 6);
  EXPECT_LT(BandRows(-1, 3), 0);
  EXPECT_LT(BandRows(kBig, 1), 0);
  EXPECT_EQ(PackedBytes(4, 5), 15u * 4);
  EXPECT_EQ(PackedBytes(4, -5), 0u);
  EXPECT_EQ(PackedBytes(16, kBig), kEndless);
  EXPECT_EQ(Magnitude(-3), 3);
  EXPECT_EQ(Magnitude(std::numeric_limits<std::int32_t>::min()), kBig);
  EXPECT_EQ(AtLeastOne(0), 1);
}

TEST(BlasExtentsTest, WhatDoesNotFitIsEndless) {
  EXPECT_EQ(MatrixBytes(16, kBig, kBig, kBig), kEndless);
  EXPECT_EQ(BatchBytes(16, 2, 2, 2, std::numeric_limits<std::int64_t>::max(), kBig), kEndless);
  EXPECT_LT(VectorBytes(16, kBig, 1), kEndless);
  EXPECT_EQ(VectorBytes(16, kBig, std::numeric_limits<std::int32_t>::min()), kEndless);
}

TEST(BlasExtentsTest, WhatMakesNoSense) {
  EXPECT_TRUE(MatrixIsValid(3, 4, 3));
  EXPECT_TRUE(MatrixIsValid(0, 0, 1));
  EXPECT_FALSE(MatrixIsValid(3, 4, 2));
  EXPECT_FALSE(MatrixIsValid(0, 0, 0));
  EXPECT_FALSE(MatrixIsValid(-1, 4, 4));
  EXPECT_FALSE(MatrixIsValid(4, -1, 4));
  EXPECT_FALSE(BatchIsValid(-1, 1));
  EXPECT_FALSE(BatchIsValid(1, -1));
  EXPECT_FALSE(IsOperation(3));
  EXPECT_FALSE(IsDataType(99));
  EXPECT_FALSE(IsComputeType(0));
}

TEST(BlasExtentsTest, ScalarsHaveTheComputeType) {
  EXPECT_EQ(ScalarBytes(64, 2), 2u);   // COMPUTE_16F
  EXPECT_EQ(ScalarBytes(68, 2), 4u);   // COMPUTE_32F with C of R_16F
  EXPECT_EQ(ScalarBytes(68, 4), 8u);   // ... of C_32F
  EXPECT_EQ(ScalarBytes(70, 5), 16u);  // COMPUTE_64F with C of C_64F
  EXPECT_EQ(ScalarBytes(72, 10), 4u);  // COMPUTE_32I
}

}  // namespace
}  // namespace torpor::wire
