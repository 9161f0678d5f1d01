// Activations, softmax and pooling of the emulated cuDNN against their definitions in double.
#include <functional>
#include <limits>

#include "tests/emulator/dnn/dnn_fixture.h"

namespace torpor::emulator {
namespace {

const Dims kShape = {2, 3, 5, 4};

class LayersTest : public DnnTest, public testing::WithParamInterface<cudnnDataType_t> {
 protected:
  const cudnnDataType_t type_ = GetParam();
  const ScalarOf one_{type_, 1};
  const ScalarOf zero_{type_, 0};
};

INSTANTIATE_TEST_SUITE_P(Types, LayersTest, testing::ValuesIn(kFloatingTypes));

struct Function {
  cudnnActivationMode_t mode;
  double coefficient;
  std::function<double(double)> value;
};

const Function kFunctions[] = {
    {CUDNN_ACTIVATION_SIGMOID, 0, [](double x) { return 1 / (1 + std::exp(-x)); }},
    {CUDNN_ACTIVATION_RELU, 0, [](double x) { return std::fmax(x, 0); }},
    {CUDNN_ACTIVATION_TANH, 0, [](double x) { return std::tanh(x); }},
    {CUDNN_ACTIVATION_CLIPPED_RELU, 0.5, [](double x) { return std::fmin(std::fmax(x, 0), 0.5); }},
    {CUDNN_ACTIVATION_ELU, 0.7, [](double x) { return x < 0 ? 0.7 * (std::exp(x) - 1) : x; }},
    {CUDNN_ACTIVATION_SWISH, 0, [](double x) { return x / (1 + std::exp(-2 * x)); }},
    {CUDNN_ACTIVATION_IDENTITY, 0, [](double x) { return x; }},
};

TEST_P(LayersTest, ActivationsAndTheirSlopes) {
  cudnnActivationDescriptor_t activation = nullptr;
  ASSERT_DNN(cudnnCreateActivationDescriptor(&activation));
  for (const Function& function : kFunctions) {
    ASSERT_DNN(cudnnSetActivationDescriptor(activation, function.mode, CUDNN_PROPAGATE_NAN,
                                            function.coefficient));
    ASSERT_DNN(cudnnSetActivationDescriptorSwishBeta(activation, 2));
    DeviceTensor x(type_, kShape, CUDNN_TENSOR_NHWC, 1);
    DeviceTensor y(type_, kShape);
    std::vector<double> expected = x.values();
    for (double& value : expected) value = function.value(value);
    ASSERT_DNN(cudnnActivationForward(handle_, activation, one_.get(), x.tensor(), x.data(),
                                      zero_.get(), y.tensor(), y.data()));
    ASSERT_NO_FATAL_FAILURE(y.Expect(expected)) << function.mode;

    DeviceTensor dy(type_, kShape, CUDNN_TENSOR_NCHW, 2);
    DeviceTensor dx(type_, kShape);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      constexpr double kStep = 1e-6;
      const double slope =
          (function.value(x[i] + kStep) - function.value(x[i] - kStep)) / (2 * kStep);
      expected[i] = dy[i] * slope;
    }
    ASSERT_DNN(cudnnActivationBackward(handle_, activation, one_.get(), y.tensor(), y.data(),
                                       dy.tensor(), dy.data(), x.tensor(), x.data(), zero_.get(),
                                       dx.tensor(), dx.data()));
    dx.Download();
    for (std::size_t i = 0; i < expected.size(); ++i) {
      // The slope by differences is good to some 1e-9.
      ASSERT_NEAR(dx[i], expected[i], std::fmax(ToleranceOf(type_), 1e-8)) << function.mode;
    }
  }
  cudnnDestroyActivationDescriptor(activation);
}

// Places of the elements that are normalised together with the first, for each first.
std::vector<std::vector<std::size_t>> SoftmaxGroups(cudnnSoftmaxMode_t mode) {
  std::vector<std::vector<std::size_t>> groups;
  const std::size_t space = 20;
  for (std::size_t image = 0; image < 2; ++image) {
    if (mode == CUDNN_SOFTMAX_MODE_INSTANCE) {
      groups.emplace_back();
      for (std::size_t i = 0; i < 3 * space; ++i) groups.back().push_back(image * 60 + i);
      continue;
    }
    for (std::size_t point = 0; point < space; ++point) {
      groups.emplace_back();
      for (std::size_t c = 0; c < 3; ++c) groups.back().push_back(image * 60 + c * space + point);
    }
  }
  return groups;
}

TEST_P(LayersTest, SoftmaxAndItsGradient) {
  for (const auto mode : {CUDNN_SOFTMAX_MODE_INSTANCE, CUDNN_SOFTMAX_MODE_CHANNEL}) {
    for (const auto algorithm : {CUDNN_SOFTMAX_FAST, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_LOG}) {
      DeviceTensor x(type_, kShape, CUDNN_TENSOR_NCHW, 1);
      DeviceTensor y(type_, kShape);
      DeviceTensor dy(type_, kShape, CUDNN_TENSOR_NCHW, 2);
      DeviceTensor dx(type_, kShape);
      std::vector<double> expected(x.values().size());
      std::vector<double> gradient(expected.size());
      ASSERT_DNN(cudnnSoftmaxForward(handle_, algorithm, mode, one_.get(), x.tensor(), x.data(),
                                     zero_.get(), y.tensor(), y.data()));
      y.Download();
      for (const auto& group : SoftmaxGroups(mode)) {
        double sum = 0;
        double dot = 0;
        const bool is_log = algorithm == CUDNN_SOFTMAX_LOG;
        for (const std::size_t i : group) sum += std::exp(x[i]);
        for (const std::size_t i : group) {
          expected[i] = is_log ? x[i] - std::log(sum) : std::exp(x[i]) / sum;
          dot += is_log ? dy[i] : dy[i] * y[i];
        }
        for (const std::size_t i : group) {
          gradient[i] = is_log ? dy[i] - std::exp(y[i]) * dot : y[i] * (dy[i] - dot);
        }
      }
      ASSERT_NO_FATAL_FAILURE(y.Expect(expected));
      ASSERT_DNN(cudnnSoftmaxBackward(handle_, algorithm, mode, one_.get(), y.tensor(), y.data(),
                                      dy.tensor(), dy.data(), zero_.get(), dx.tensor(), dx.data()));
      ASSERT_NO_FATAL_FAILURE(dx.Expect(gradient));
    }
  }
}

TEST_F(DnnTest, AnAccurateSoftmaxDoesNotOverflow) {
  DeviceTensor x(CUDNN_DATA_FLOAT, {1, 2, 1, 1});
  x.values() = {1000, 1000};
  x.Upload();
  const ScalarOf one(CUDNN_DATA_FLOAT, 1);
  const ScalarOf zero(CUDNN_DATA_FLOAT, 0);
  ASSERT_DNN(cudnnSoftmaxForward(handle_, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL,
                                 one.get(), x.tensor(), x.data(), zero.get(), x.tensor(),
                                 x.data()));
  x.Expect({0.5, 0.5});
}

class PoolingTest : public LayersTest {
 protected:
  static constexpr int kWindow[] = {3, 2};
  static constexpr int kPadding[] = {1, 0};
  static constexpr int kStrides[] = {2, 1};

  void SetUp() override {
    LayersTest::SetUp();
    ASSERT_DNN(cudnnCreatePoolingDescriptor(&pooling_));
  }
  void TearDown() override {
    cudnnDestroyPoolingDescriptor(pooling_);
    LayersTest::TearDown();
  }
  void SetMode(cudnnPoolingMode_t mode) {
    ASSERT_DNN(cudnnSetPoolingNdDescriptor(pooling_, mode, CUDNN_PROPAGATE_NAN, 2, kWindow,
                                           kPadding, kStrides));
    ASSERT_DNN(cudnnSetPooling2dDescriptor(pooling_, mode, CUDNN_PROPAGATE_NAN, 3, 2, 1, 0, 2, 1));
  }
  // Places in x that the window of (image and channel, row, column) covers.
  static std::vector<std::size_t> Covered(int plane, int row, int column) {
    std::vector<std::size_t> covered;
    for (int r = row * 2 - 1; r < row * 2 + 2; ++r) {
      for (int c = column; c < column + 2; ++c) {
        if (r >= 0 && r < 5) covered.push_back(static_cast<std::size_t>((plane * 5 + r) * 4 + c));
      }
    }
    return covered;
  }

  cudnnPoolingDescriptor_t pooling_ = nullptr;
};

INSTANTIATE_TEST_SUITE_P(Types, PoolingTest, testing::ValuesIn(kFloatingTypes));

TEST_P(PoolingTest, EveryModeAndItsGradient) {
  for (const auto mode :
       {CUDNN_POOLING_MAX, CUDNN_POOLING_MAX_DETERMINISTIC,
        CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING, CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING}) {
    ASSERT_NO_FATAL_FAILURE(SetMode(mode));
    DeviceTensor x(type_, kShape, CUDNN_TENSOR_NHWC, 1);
    int dims[4] = {};
    ASSERT_DNN(cudnnGetPoolingNdForwardOutputDim(pooling_, x.tensor(), 4, dims));
    ASSERT_EQ(Dims(dims, dims + 4), (Dims{2, 3, 3, 3}));
    DeviceTensor y(type_, {2, 3, 3, 3});
    DeviceTensor dy(type_, {2, 3, 3, 3}, CUDNN_TENSOR_NCHW, 2);
    DeviceTensor dx(type_, kShape);
    std::vector<double> expected(y.values().size());
    std::vector<double> gradient(x.values().size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const auto covered =
          Covered(static_cast<int>(i / 9), static_cast<int>(i / 3 % 3), static_cast<int>(i % 3));
      if (mode == CUDNN_POOLING_MAX || mode == CUDNN_POOLING_MAX_DETERMINISTIC) {
        std::size_t best = covered.front();
        for (const std::size_t place : covered) best = x[place] > x[best] ? place : best;
        expected[i] = x[best];
        gradient[best] += dy[i];
        continue;
      }
      const double count = mode == CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING
                               ? 6
                               : static_cast<double>(covered.size());
      for (const std::size_t place : covered) {
        expected[i] += x[place] / count;
        gradient[place] += dy[i] / count;
      }
    }
    ASSERT_DNN(cudnnPoolingForward(handle_, pooling_, one_.get(), x.tensor(), x.data(), zero_.get(),
                                   y.tensor(), y.data()));
    ASSERT_NO_FATAL_FAILURE(y.Expect(expected)) << mode;
    ASSERT_DNN(cudnnPoolingBackward(handle_, pooling_, one_.get(), y.tensor(), y.data(),
                                    dy.tensor(), dy.data(), x.tensor(), x.data(), zero_.get(),
                                    dx.tensor(), dx.data()));
    ASSERT_NO_FATAL_FAILURE(dx.Expect(gradient)) << mode;
  }
}

TEST_P(PoolingTest, NanIsPropagatedOrPassedOver) {
  DeviceTensor x(type_, {1, 1, 2, 2});
  DeviceTensor y(type_, {1, 1, 1, 1});
  x.values() = {1, std::numeric_limits<double>::quiet_NaN(), 3, 2};
  x.Upload();
  for (const auto nan : {CUDNN_NOT_PROPAGATE_NAN, CUDNN_PROPAGATE_NAN}) {
    ASSERT_DNN(cudnnSetPooling2dDescriptor(pooling_, CUDNN_POOLING_MAX, nan, 2, 2, 0, 0, 1, 1));
    ASSERT_DNN(cudnnPoolingForward(handle_, pooling_, one_.get(), x.tensor(), x.data(), zero_.get(),
                                   y.tensor(), y.data()));
    y.Download();
    EXPECT_EQ(std::isnan(y[0]), nan == CUDNN_PROPAGATE_NAN);
    if (nan == CUDNN_NOT_PROPAGATE_NAN) {
      EXPECT_EQ(y[0], 3);
    }
  }
}

}  // namespace
}  // namespace torpor::emulator
