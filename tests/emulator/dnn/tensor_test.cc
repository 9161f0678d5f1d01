// Tensor operations of the emulated cuDNN against plain loops.
#include <functional>

#include "tests/emulator/dnn/dnn_fixture.h"

namespace torpor::emulator {
namespace {

const Dims kShape = {2, 3, 4, 5};

class TensorTest : public DnnTest, public testing::WithParamInterface<cudnnDataType_t> {
 protected:
  const cudnnDataType_t type_ = GetParam();
  const ScalarOf one_{type_, 1};
  const ScalarOf half_{type_, 0.5};
  const ScalarOf zero_{type_, 0};
};

INSTANTIATE_TEST_SUITE_P(Types, TensorTest, testing::ValuesIn(kFloatingTypes));

TEST_P(TensorTest, SetAndScale) {
  DeviceTensor y(type_, kShape, CUDNN_TENSOR_NHWC, 1);
  std::vector<double> expected = y.values();
  for (double& value : expected) value *= 0.5;
  ASSERT_DNN(cudnnScaleTensor(handle_, y.tensor(), y.data(), half_.get()));
  y.Expect(expected);
  char three[8] = {};
  WriteAs(type_, three, 0, 3);
  ASSERT_DNN(cudnnSetTensor(handle_, y.tensor(), y.data(), three));
  y.Expect(std::vector<double>(expected.size(), 3));
}

TEST_P(TensorTest, ABiasIsAddedToAllThatItStandsFor) {
  DeviceTensor bias(type_, {1, 3, 1, 1}, CUDNN_TENSOR_NCHW, 1);
  DeviceTensor y(type_, kShape, CUDNN_TENSOR_NHWC, 2);
  std::vector<double> expected = y.values();
  for (std::size_t i = 0; i < expected.size(); ++i) {
    expected[i] = expected[i] / 2 + bias[i / 20 % 3];
  }
  ASSERT_DNN(cudnnAddTensor(handle_, one_.get(), bias.tensor(), bias.data(), half_.get(),
                            y.tensor(), y.data()));
  y.Expect(expected);
  EXPECT_EQ(cudnnAddTensor(handle_, one_.get(), y.tensor(), y.data(), half_.get(), bias.tensor(),
                           bias.data()),
            CUDNN_STATUS_BAD_PARAM);
}

TEST_P(TensorTest, TransformsOrdersAndTypes) {
  DeviceTensor x(type_, kShape, CUDNN_TENSOR_NHWC, 1);
  DeviceTensor y(CUDNN_DATA_FLOAT, kShape);
  const ScalarOf one(CUDNN_DATA_FLOAT, 1);
  const ScalarOf zero(CUDNN_DATA_FLOAT, 0);
  ASSERT_DNN(cudnnTransformTensor(handle_, one.get(), x.tensor(), x.data(), zero.get(), y.tensor(),
                                  y.data()));
  y.Expect(x.values());
}

TEST_P(TensorTest, EveryOperation) {
  const struct {
    cudnnOpTensorOp_t operation;
    std::function<double(double, double)> combine;
  } cases[] = {
      {CUDNN_OP_TENSOR_ADD, [](double a, double b) { return a + b; }},
      {CUDNN_OP_TENSOR_MUL, [](double a, double b) { return a * b; }},
      {CUDNN_OP_TENSOR_MIN, [](double a, double b) { return std::fmin(a, b); }},
      {CUDNN_OP_TENSOR_MAX, [](double a, double b) { return std::fmax(a, b); }},
      {CUDNN_OP_TENSOR_NOT, [](double a, double) { return 1 - a; }},
  };
  cudnnOpTensorDescriptor_t descriptor = nullptr;
  ASSERT_DNN(cudnnCreateOpTensorDescriptor(&descriptor));
  for (const auto& c : cases) {
    ASSERT_DNN(cudnnSetOpTensorDescriptor(descriptor, c.operation, CUDNN_DATA_FLOAT,
                                          CUDNN_NOT_PROPAGATE_NAN));
    DeviceTensor a(type_, kShape, CUDNN_TENSOR_NCHW, 1);
    DeviceTensor b(type_, {1, 3, 4, 5}, CUDNN_TENSOR_NCHW, 2);
    DeviceTensor y(type_, kShape, CUDNN_TENSOR_NHWC, 3);
    std::vector<double> expected = y.values();
    for (std::size_t i = 0; i < expected.size(); ++i) {
      expected[i] = c.combine(a[i] / 2, b[i % 60]) + expected[i];
    }
    ASSERT_DNN(cudnnOpTensor(handle_, descriptor, half_.get(), a.tensor(), a.data(), one_.get(),
                             b.tensor(), b.data(), one_.get(), y.tensor(), y.data()));
    ASSERT_NO_FATAL_FAILURE(y.Expect(expected)) << c.operation;
  }
  cudnnDestroyOpTensorDescriptor(descriptor);
}

TEST_P(TensorTest, EveryReduction) {
  const struct {
    cudnnReduceTensorOp_t operation;
    double first;
    std::function<double(double, double)> step;
    std::function<double(double)> last;
  } cases[] = {
      {CUDNN_REDUCE_TENSOR_ADD, 0, std::plus<>(), [](double v) { return v; }},
      {CUDNN_REDUCE_TENSOR_MUL, 1, std::multiplies<>(), [](double v) { return v; }},
      {CUDNN_REDUCE_TENSOR_MIN, 9, [](double a, double b) { return std::fmin(a, b); },
       [](double v) { return v; }},
      {CUDNN_REDUCE_TENSOR_MAX, -9, [](double a, double b) { return std::fmax(a, b); },
       [](double v) { return v; }},
      {CUDNN_REDUCE_TENSOR_AMAX, 0, [](double a, double b) { return std::fmax(a, std::fabs(b)); },
       [](double v) { return v; }},
      {CUDNN_REDUCE_TENSOR_AVG, 0, std::plus<>(), [](double v) { return v / 10; }},
      {CUDNN_REDUCE_TENSOR_NORM1, 0, [](double a, double b) { return a + std::fabs(b); },
       [](double v) { return v; }},
      {CUDNN_REDUCE_TENSOR_NORM2, 0, [](double a, double b) { return a + b * b; },
       [](double v) { return std::sqrt(v); }},
  };
  cudnnReduceTensorDescriptor_t descriptor = nullptr;
  ASSERT_DNN(cudnnCreateReduceTensorDescriptor(&descriptor));
  DeviceTensor a(type_, kShape, CUDNN_TENSOR_NHWC, 1);
  for (const auto& c : cases) {
    ASSERT_DNN(cudnnSetReduceTensorDescriptor(descriptor, c.operation, CUDNN_DATA_FLOAT,
                                              CUDNN_PROPAGATE_NAN, CUDNN_REDUCE_TENSOR_NO_INDICES,
                                              CUDNN_32BIT_INDICES));
    DeviceTensor y(type_, {1, 3, 4, 1});
    std::vector<double> expected(12, c.first);
    for (std::size_t i = 0; i < a.values().size(); ++i) {
      double& so_far = expected[i / 5 % 12];
      so_far = c.step(so_far, a[i]);
    }
    for (double& value : expected) value = c.last(value);
    std::size_t bytes = 1;
    ASSERT_DNN(cudnnGetReductionWorkspaceSize(handle_, descriptor, a.tensor(), y.tensor(), &bytes));
    EXPECT_EQ(bytes, 0u);
    ASSERT_DNN(cudnnReduceTensor(handle_, descriptor, nullptr, 0, nullptr, 0, one_.get(),
                                 a.tensor(), a.data(), zero_.get(), y.tensor(), y.data()));
    ASSERT_NO_FATAL_FAILURE(y.Expect(expected)) << c.operation;
  }
  cudnnDestroyReduceTensorDescriptor(descriptor);
}

TEST_F(DnnTest, WhatIsMissingSaysSo) {
  DeviceTensor y(CUDNN_DATA_FLOAT, kShape);
  EXPECT_EQ(cudnnBackendInitialize(nullptr), CUDNN_STATUS_NOT_SUPPORTED);
  cudnnTensorDescriptor_t packed = nullptr;
  ASSERT_DNN(cudnnCreateTensorDescriptor(&packed));
  EXPECT_EQ(
      cudnnSetTensor4dDescriptor(packed, CUDNN_TENSOR_NCHW_VECT_C, CUDNN_DATA_INT8x4, 1, 4, 2, 2),
      CUDNN_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(cudnnSetTensor4dDescriptor(packed, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 0, 2, 2),
            CUDNN_STATUS_BAD_PARAM);
  cudnnDestroyTensorDescriptor(packed);
}

TEST_F(DnnTest, WorkIsDoneInTheOrderOfTheStream) {
  DeviceTensor y(CUDNN_DATA_FLOAT, {1, 1, 1, 1});
  const float two = 2;
  ASSERT_DNN(cudnnSetTensor(handle_, y.tensor(), y.data(), &two));
  for (int i = 0; i < 10; ++i) ASSERT_DNN(cudnnScaleTensor(handle_, y.tensor(), y.data(), &two));
  y.Expect({2048});
}

}  // namespace
}  // namespace torpor::emulator
