// Batch normalisation of the emulated cuDNN against its definition in double.
#include "tests/emulator/dnn/dnn_fixture.h"

namespace torpor::emulator {
namespace {

constexpr double kEpsilon = 1e-5;
const Dims kShape = {3, 2, 4, 5};
constexpr std::size_t kCount = 120;

struct Case {
  cudnnDataType_t type;
  cudnnBatchNormMode_t mode;
};

class BatchNormTest : public DnnTest, public testing::WithParamInterface<Case> {
 protected:
  // Statistics are single precision for all but doubles.
  const cudnnDataType_t type_ = GetParam().type;
  const cudnnDataType_t statistics_type_ =
      type_ == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
  const bool spatial_ = GetParam().mode != CUDNN_BATCHNORM_PER_ACTIVATION;
  const Dims statistics_shape_ = spatial_ ? Dims{1, 2, 1, 1} : Dims{1, 2, 4, 5};
  const std::size_t features_ = spatial_ ? 2 : 40;
  const std::size_t each_ = kCount / features_;
  const ScalarOf one_{type_, 1};
  const ScalarOf zero_{type_, 0};

  std::size_t FeatureOf(std::size_t i) const { return spatial_ ? i / 20 % 2 : i % 40; }

  void Measure(const DeviceTensor& x, std::vector<double>& mean,
               std::vector<double>& variance) const {
    mean.assign(features_, 0);
    variance.assign(features_, 0);
    const auto count = static_cast<double>(each_);
    for (std::size_t i = 0; i < kCount; ++i) mean[FeatureOf(i)] += x[i] / count;
    for (std::size_t i = 0; i < kCount; ++i) {
      variance[FeatureOf(i)] += std::pow(x[i] - mean[FeatureOf(i)], 2) / count;
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Cases, BatchNormTest,
                         testing::Values(Case{CUDNN_DATA_FLOAT, CUDNN_BATCHNORM_SPATIAL},
                                         Case{CUDNN_DATA_FLOAT, CUDNN_BATCHNORM_SPATIAL_PERSISTENT},
                                         Case{CUDNN_DATA_FLOAT, CUDNN_BATCHNORM_PER_ACTIVATION},
                                         Case{CUDNN_DATA_DOUBLE, CUDNN_BATCHNORM_SPATIAL},
                                         Case{CUDNN_DATA_HALF, CUDNN_BATCHNORM_SPATIAL},
                                         Case{CUDNN_DATA_BFLOAT16, CUDNN_BATCHNORM_SPATIAL}));

TEST_P(BatchNormTest, Inference) {
  DeviceTensor x(type_, kShape, CUDNN_TENSOR_NHWC, 1);
  DeviceTensor y(type_, kShape, CUDNN_TENSOR_NHWC);
  DeviceTensor scale(statistics_type_, statistics_shape_, CUDNN_TENSOR_NCHW, 2);
  DeviceTensor bias(statistics_type_, statistics_shape_, CUDNN_TENSOR_NCHW, 3);
  DeviceTensor mean(statistics_type_, statistics_shape_, CUDNN_TENSOR_NCHW, 4);
  DeviceTensor variance(statistics_type_, statistics_shape_, CUDNN_TENSOR_NCHW, 5);
  for (double& value : variance.values()) value = 1 + value / 2;
  variance.Upload();
  cudnnTensorDescriptor_t derived = nullptr;
  ASSERT_DNN(cudnnCreateTensorDescriptor(&derived));
  ASSERT_DNN(cudnnDeriveBNTensorDescriptor(derived, x.tensor(), GetParam().mode));
  std::vector<double> expected(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    const std::size_t f = FeatureOf(i);
    expected[i] = (x[i] - mean[f]) / std::sqrt(variance[f] + kEpsilon) * scale[f] + bias[f];
  }
  ASSERT_DNN(cudnnBatchNormalizationForwardInference(
      handle_, GetParam().mode, one_.get(), zero_.get(), x.tensor(), x.data(), y.tensor(), y.data(),
      derived, scale.data(), bias.data(), mean.data(), variance.data(), kEpsilon));
  y.Expect(expected);
  cudnnDestroyTensorDescriptor(derived);
}

TEST_P(BatchNormTest, TrainingAndItsGradient) {
  DeviceTensor x(type_, kShape, CUDNN_TENSOR_NCHW, 1);
  DeviceTensor y(type_, kShape);
  DeviceTensor scale(statistics_type_, statistics_shape_, CUDNN_TENSOR_NCHW, 2);
  DeviceTensor bias(statistics_type_, statistics_shape_, CUDNN_TENSOR_NCHW, 3);
  DeviceTensor running_mean(statistics_type_, statistics_shape_, CUDNN_TENSOR_NCHW, 4);
  DeviceTensor running_variance(statistics_type_, statistics_shape_, CUDNN_TENSOR_NCHW, 5);
  DeviceTensor saved_mean(statistics_type_, statistics_shape_);
  DeviceTensor saved_inverse(statistics_type_, statistics_shape_);
  std::vector<double> mean;
  std::vector<double> variance;
  Measure(x, mean, variance);
  std::vector<double> normalised(kCount);
  std::vector<double> expected(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    const std::size_t f = FeatureOf(i);
    normalised[i] = (x[i] - mean[f]) / std::sqrt(variance[f] + kEpsilon);
    expected[i] = normalised[i] * scale[f] + bias[f];
  }
  std::vector<double> new_mean(features_);
  std::vector<double> new_variance(features_);
  std::vector<double> inverse(features_);
  const auto count = static_cast<double>(each_);
  for (std::size_t f = 0; f < features_; ++f) {
    new_mean[f] = 0.75 * running_mean[f] + 0.25 * mean[f];
    new_variance[f] = 0.75 * running_variance[f] + 0.25 * variance[f] * count / (count - 1);
    inverse[f] = 1 / std::sqrt(variance[f] + kEpsilon);
  }
  ASSERT_DNN(cudnnBatchNormalizationForwardTraining(
      handle_, GetParam().mode, one_.get(), zero_.get(), x.tensor(), x.data(), y.tensor(), y.data(),
      scale.tensor(), scale.data(), bias.data(), 0.25, running_mean.data(), running_variance.data(),
      kEpsilon, saved_mean.data(), saved_inverse.data()));
  y.Expect(expected);
  running_mean.Expect(new_mean);
  running_variance.Expect(new_variance);
  saved_mean.Expect(mean);
  saved_inverse.Expect(inverse);

  DeviceTensor dy(type_, kShape, CUDNN_TENSOR_NCHW, 6);
  DeviceTensor dx(type_, kShape);
  DeviceTensor scale_gradient(statistics_type_, statistics_shape_);
  DeviceTensor bias_gradient(statistics_type_, statistics_shape_);
  std::vector<double> of_scale(features_);
  std::vector<double> of_bias(features_);
  for (std::size_t i = 0; i < kCount; ++i) {
    of_scale[FeatureOf(i)] += dy[i] * normalised[i];
    of_bias[FeatureOf(i)] += dy[i];
  }
  for (std::size_t i = 0; i < kCount; ++i) {
    const std::size_t f = FeatureOf(i);
    expected[i] =
        scale[f] * inverse[f] * (dy[i] - of_bias[f] / count - normalised[i] * of_scale[f] / count);
  }
  for (const bool is_saved : {true, false}) {
    ASSERT_DNN(cudnnBatchNormalizationBackward(
        handle_, GetParam().mode, one_.get(), zero_.get(), one_.get(), zero_.get(), x.tensor(),
        x.data(), dy.tensor(), dy.data(), dx.tensor(), dx.data(), scale.tensor(), scale.data(),
        scale_gradient.data(), bias_gradient.data(), kEpsilon,
        is_saved ? saved_mean.data() : nullptr, is_saved ? saved_inverse.data() : nullptr));
    dx.Expect(expected);
    scale_gradient.Expect(of_scale);
    bias_gradient.Expect(of_bias);
  }
}

}  // namespace
}  // namespace torpor::emulator
