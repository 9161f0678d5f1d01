// Local response normalisation of the emulated cuDNN against its definition in double.
#include "tests/emulator/dnn/dnn_fixture.h"

namespace torpor::emulator {
namespace {

constexpr int kChannels = 7;
constexpr int kPoints = 6;
constexpr int kWidth = 4;  // of the window: one channel before, two behind
constexpr double kAlpha = 0.5;
constexpr double kBeta = 0.75;
constexpr double kK = 1.5;

class ResponseNormTest : public DnnTest, public testing::WithParamInterface<cudnnDataType_t> {};

INSTANTIATE_TEST_SUITE_P(Types, ResponseNormTest, testing::ValuesIn(kFloatingTypes));

// The place of a value in an NCHW tensor of one image.
std::size_t PlaceOf(int channel, int point) {
  return static_cast<std::size_t>(channel) * kPoints + static_cast<std::size_t>(point);
}

double Normalised(const std::vector<double>& x, int channel, int point) {
  double sum = 0;
  for (int near = channel - 1; near <= channel + 2; ++near) {
    if (near < 0 || near >= kChannels) continue;
    sum += std::pow(x[PlaceOf(near, point)], 2);
  }
  return x[PlaceOf(channel, point)] * std::pow(kK + kAlpha / kWidth * sum, -kBeta);
}

TEST_P(ResponseNormTest, ForwardAndItsGradient) {
  const cudnnDataType_t type = GetParam();
  const ScalarOf one(type, 1);
  const ScalarOf zero(type, 0);
  cudnnLRNDescriptor_t norm = nullptr;
  ASSERT_DNN(cudnnCreateLRNDescriptor(&norm));
  ASSERT_DNN(cudnnSetLRNDescriptor(norm, kWidth, kAlpha, kBeta, kK));
  const Dims shape = {1, kChannels, 2, 3};
  DeviceTensor x(type, shape, CUDNN_TENSOR_NHWC, 1);
  DeviceTensor y(type, shape);
  std::vector<double> expected(x.values().size());
  for (int c = 0; c < kChannels; ++c) {
    for (int p = 0; p < kPoints; ++p) {
      expected[PlaceOf(c, p)] = Normalised(x.values(), c, p);
    }
  }
  ASSERT_DNN(cudnnLRNCrossChannelForward(handle_, norm, CUDNN_LRN_CROSS_CHANNEL_DIM1, one.get(),
                                         x.tensor(), x.data(), zero.get(), y.tensor(), y.data()));
  y.Expect(expected);

  DeviceTensor dy(type, shape, CUDNN_TENSOR_NCHW, 2);
  DeviceTensor dx(type, shape);
  ASSERT_DNN(cudnnLRNCrossChannelBackward(handle_, norm, CUDNN_LRN_CROSS_CHANNEL_DIM1, one.get(),
                                          y.tensor(), y.data(), dy.tensor(), dy.data(), x.tensor(),
                                          x.data(), zero.get(), dx.tensor(), dx.data()));
  dx.Download();
  for (std::size_t i = 0; i < expected.size(); ++i) {
    constexpr double kStep = 1e-6;
    double slope = 0;
    for (int c = 0; c < kChannels; ++c) {
      const int point = static_cast<int>(i) % kPoints;
      std::vector<double> more = x.values();
      std::vector<double> less = x.values();
      more[i] += kStep;
      less[i] -= kStep;
      slope += dy[PlaceOf(c, point)] * (Normalised(more, c, point) - Normalised(less, c, point)) /
               (2 * kStep);
    }
    ASSERT_NEAR(dx[i], slope, std::fmax(ToleranceOf(type), 1e-8));
  }
  cudnnDestroyLRNDescriptor(norm);
}

}  // namespace
}  // namespace torpor::emulator
