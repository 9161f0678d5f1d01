#include <gtest/gtest.h>

#include "nvidia/cudnn/shapes.h"

namespace torpor {
namespace {

TEST(CudnnShapesTest, DenseTensorsInEitherOrder) {
  const DnnTensor planes = DnnDense(CUDNN_DATA_HALF, CUDNN_TENSOR_NCHW, 4, {2, 3, 4, 5});
  EXPECT_EQ(planes.strides, (DnnDims{60, 20, 5, 1}));
  const DnnTensor pixels = DnnDense(CUDNN_DATA_HALF, CUDNN_TENSOR_NHWC, 4, {2, 3, 4, 5});
  EXPECT_EQ(pixels.strides, (DnnDims{60, 1, 15, 3}));
  EXPECT_EQ(DnnBytes(planes), 240u);
  EXPECT_EQ(DnnBytes(pixels), 240u);
}

TEST(CudnnShapesTest, WhatDoesNotFitIsNoTensor) {
  EXPECT_FALSE(
      DnnIsValid(DnnDense(CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 4, {1, 1 << 20, 1 << 20, 2})));
  DnnTensor x = DnnDense(CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 4, {1, 2, 3, 4});
  ASSERT_TRUE(DnnIsValid(x));
  x.rank = 9;
  EXPECT_FALSE(DnnIsValid(x));
  x.rank = -1;
  EXPECT_FALSE(DnnIsValid(x));
  x.rank = 4;
  x.type = CUDNN_DATA_INT8x32;
  EXPECT_FALSE(DnnIsValid(x));
}

TEST(CudnnShapesTest, SizesThatNoMemoryHasAreEndless) {
  DnnFilter w{.rank = 8};
  w.dims.fill(INT32_MAX);
  EXPECT_EQ(DnnBytes(w), kDnnEndless);
}

TEST(CudnnShapesTest, OutputsFollowFromTheOthers) {
  const DnnTensor x = DnnDense(CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 4, {2, 4, 9, 8});
  const DnnFilter w{.rank = 4, .dims = {6, 2, 3, 3}};
  DnnConvolution convolution{.rank = 2, .padding = {1, 0}, .strides = {2, 1}, .dilation = {1, 2}};
  DnnDims dims{};
  EXPECT_FALSE(DnnOutputDims(convolution, x, w, dims)) << "two inputs are not four";
  convolution.groups = 2;
  ASSERT_TRUE(DnnOutputDims(convolution, x, w, dims));
  EXPECT_EQ(dims, (DnnDims{2, 6, 5, 4}));
  convolution.dilation = {9, 1};
  EXPECT_FALSE(DnnOutputDims(convolution, x, w, dims)) << "larger than what it slides over";
  const DnnPooling pooling{.rank = 2, .window = {3, 2}, .padding = {1, 0}, .strides = {2, 2}};
  ASSERT_TRUE(DnnOutputDims(pooling, x, dims));
  EXPECT_EQ(dims, (DnnDims{2, 4, 5, 4}));
}

}  // namespace
}  // namespace torpor
