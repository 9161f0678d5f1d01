// Convolutions of the emulated cuDNN and their gradients against loops in double.
#include "tests/emulator/dnn/dnn_fixture.h"

namespace torpor::emulator {
namespace {

// A convolution in two dimensions, and its shapes.
struct Case {
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  cudnnTensorFormat_t format = CUDNN_TENSOR_NCHW;
  int padding = 1;
  int stride = 1;
  int dilation = 1;
  int groups = 1;
  cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
};

constexpr int kImages = 2;
constexpr int kInputs = 4;
constexpr int kOutputs = 6;
constexpr int kHeight = 9;
constexpr int kWidth = 7;
constexpr int kRows = 3;
constexpr int kColumns = 2;

int Extent(const Case& c, int length, int window) {
  return (length + 2 * c.padding - (window - 1) * c.dilation - 1) / c.stride + 1;
}

class Convolution {
 public:
  explicit Convolution(const Case& with)
      : with_(with),
        height_(Extent(with, kHeight, kRows)),
        width_(Extent(with, kWidth, kColumns)),
        x(with.type, {kImages, kInputs, kHeight, kWidth}, with.format, 1),
        w(with.type, {kOutputs, kInputs / with.groups, kRows, kColumns}, with.format, 2),
        y(with.type, {kImages, kOutputs, height_, width_}, with.format, 3) {
    EXPECT_EQ(cudnnCreateConvolutionDescriptor(&descriptor), CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(cudnnSetConvolution2dDescriptor(
                  descriptor, with.padding, with.padding, with.stride, with.stride, with.dilation,
                  with.dilation, with.mode,
                  with.type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT),
              CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(cudnnSetConvolutionGroupCount(descriptor, with.groups), CUDNN_STATUS_SUCCESS);
  }
  ~Convolution() { cudnnDestroyConvolutionDescriptor(descriptor); }
  Convolution(const Convolution&) = delete;
  Convolution& operator=(const Convolution&) = delete;

  // Calls visit(place in x, in w, in y) for each product of the definition.
  template <typename Visit>
  void ForEachProduct(Visit visit) const {
    const int group_inputs = kInputs / with_.groups;
    const int group_outputs = kOutputs / with_.groups;
    for (int n = 0; n < kImages; ++n)
      for (int k = 0; k < kOutputs; ++k)
        for (int c = 0; c < group_inputs; ++c)
          for (int p = 0; p < height_; ++p)
            for (int q = 0; q < width_; ++q)
              for (int r = 0; r < kRows; ++r)
                for (int s = 0; s < kColumns; ++s) {
                  const int row = p * with_.stride - with_.padding + r * with_.dilation;
                  const int column = q * with_.stride - with_.padding + s * with_.dilation;
                  if (row < 0 || row >= kHeight || column < 0 || column >= kWidth) continue;
                  const bool mirrored = with_.mode == CUDNN_CONVOLUTION;
                  const int filter_row = mirrored ? kRows - 1 - r : r;
                  const int filter_column = mirrored ? kColumns - 1 - s : s;
                  const int channel = k / group_outputs * group_inputs + c;
                  visit(Place({n, channel, row, column}, x.dims()),
                        Place({k, c, filter_row, filter_column}, w.dims()),
                        Place({n, k, p, q}, y.dims()));
                }
  }

  static std::size_t Place(const Dims& index, const Dims& dims) {
    std::size_t place = 0;
    for (std::size_t i = 0; i < dims.size(); ++i) {
      place = place * static_cast<std::size_t>(dims[i]) + static_cast<std::size_t>(index[i]);
    }
    return place;
  }

 private:
  const Case with_;
  const int height_;
  const int width_;

 public:
  DeviceTensor x;
  DeviceTensor w;
  DeviceTensor y;
  cudnnConvolutionDescriptor_t descriptor = nullptr;
};

const Case kCases[] = {
    {.type = CUDNN_DATA_FLOAT},
    {.type = CUDNN_DATA_FLOAT, .format = CUDNN_TENSOR_NHWC},
    {.type = CUDNN_DATA_FLOAT, .padding = 0, .stride = 2},
    {.type = CUDNN_DATA_FLOAT, .padding = 2, .stride = 2, .dilation = 2, .groups = 2},
    {.type = CUDNN_DATA_FLOAT, .mode = CUDNN_CONVOLUTION},
    {.type = CUDNN_DATA_DOUBLE, .stride = 2, .groups = 2},
    {.type = CUDNN_DATA_DOUBLE, .mode = CUDNN_CONVOLUTION},
    {.type = CUDNN_DATA_HALF},
    {.type = CUDNN_DATA_HALF, .format = CUDNN_TENSOR_NHWC, .stride = 3},
    {.type = CUDNN_DATA_BFLOAT16, .padding = 0},
};

class ConvolutionTest : public DnnTest, public testing::WithParamInterface<Case> {};

TEST_P(ConvolutionTest, Forward) {
  const Case c = GetParam();
  Convolution conv(c);
  std::vector<double> expected(conv.y.values());
  for (double& value : expected) value *= 0.5;
  conv.ForEachProduct([&](std::size_t x, std::size_t w, std::size_t y) {
    expected[y] += 2 * conv.x[x] * conv.w[w];
  });
  ASSERT_DNN(cudnnConvolutionForward(handle_, ScalarOf(c.type, 2).get(), conv.x.tensor(),
                                     conv.x.data(), conv.w.filter(), conv.w.data(), conv.descriptor,
                                     CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, nullptr, 0,
                                     ScalarOf(c.type, 0.5).get(), conv.y.tensor(), conv.y.data()));
  conv.y.Expect(expected);
}

TEST_P(ConvolutionTest, BackwardData) {
  const Case c = GetParam();
  Convolution conv(c);
  std::vector<double> expected(conv.x.values().size());
  conv.ForEachProduct(
      [&](std::size_t x, std::size_t w, std::size_t y) { expected[x] += conv.w[w] * conv.y[y]; });
  ASSERT_DNN(cudnnConvolutionBackwardData(
      handle_, ScalarOf(c.type, 1).get(), conv.w.filter(), conv.w.data(), conv.y.tensor(),
      conv.y.data(), conv.descriptor, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, nullptr, 0,
      ScalarOf(c.type, 0).get(), conv.x.tensor(), conv.x.data()));
  conv.x.Expect(expected);
}

TEST_P(ConvolutionTest, BackwardFilter) {
  const Case c = GetParam();
  Convolution conv(c);
  std::vector<double> expected(conv.w.values().size());
  conv.ForEachProduct(
      [&](std::size_t x, std::size_t w, std::size_t y) { expected[w] += conv.x[x] * conv.y[y]; });
  ASSERT_DNN(cudnnConvolutionBackwardFilter(
      handle_, ScalarOf(c.type, 1).get(), conv.x.tensor(), conv.x.data(), conv.y.tensor(),
      conv.y.data(), conv.descriptor, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, nullptr, 0,
      ScalarOf(c.type, 0).get(), conv.w.filter(), conv.w.data()));
  conv.w.Expect(expected);
}

TEST_P(ConvolutionTest, BiasAndActivation) {
  const Case c = GetParam();
  Convolution conv(c);
  DeviceTensor bias(c.type, {1, kOutputs, 1, 1}, CUDNN_TENSOR_NCHW, 5);
  DeviceTensor added(c.type, conv.y.dims(), c.format, 6);
  std::vector<double> expected(conv.y.values().size());
  conv.ForEachProduct(
      [&](std::size_t x, std::size_t w, std::size_t y) { expected[y] += conv.x[x] * conv.w[w]; });
  const std::size_t space = expected.size() / kImages / kOutputs;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    expected[i] = std::fmax(0, expected[i] + added[i] / 2 + bias[i / space % kOutputs]);
  }
  cudnnActivationDescriptor_t relu = nullptr;
  ASSERT_DNN(cudnnCreateActivationDescriptor(&relu));
  ASSERT_DNN(cudnnSetActivationDescriptor(relu, CUDNN_ACTIVATION_RELU, CUDNN_NOT_PROPAGATE_NAN, 0));
  ASSERT_DNN(cudnnConvolutionBiasActivationForward(
      handle_, ScalarOf(c.type, 1).get(), conv.x.tensor(), conv.x.data(), conv.w.filter(),
      conv.w.data(), conv.descriptor, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, nullptr, 0,
      ScalarOf(c.type, 0.5).get(), added.tensor(), added.data(), bias.tensor(), bias.data(), relu,
      conv.y.tensor(), conv.y.data()));
  conv.y.Expect(expected);
  ASSERT_DNN(cudnnSetActivationDescriptor(relu, CUDNN_ACTIVATION_TANH, CUDNN_NOT_PROPAGATE_NAN, 0));
  EXPECT_EQ(cudnnConvolutionBiasActivationForward(
                handle_, ScalarOf(c.type, 1).get(), conv.x.tensor(), conv.x.data(), conv.w.filter(),
                conv.w.data(), conv.descriptor, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM,
                nullptr, 0, ScalarOf(c.type, 0).get(), added.tensor(), added.data(), bias.tensor(),
                bias.data(), relu, conv.y.tensor(), conv.y.data()),
            CUDNN_STATUS_NOT_SUPPORTED);
  cudnnDestroyActivationDescriptor(relu);
}

TEST_P(ConvolutionTest, BackwardBias) {
  const Case c = GetParam();
  Convolution conv(c);
  DeviceTensor gradient(c.type, {1, kOutputs, 1, 1});
  std::vector<double> expected(kOutputs);
  const std::size_t space = conv.y.values().size() / kImages / kOutputs;
  for (std::size_t i = 0; i < conv.y.values().size(); ++i) {
    expected[i / space % kOutputs] += conv.y[i];
  }
  ASSERT_DNN(cudnnConvolutionBackwardBias(handle_, ScalarOf(c.type, 1).get(), conv.y.tensor(),
                                          conv.y.data(), ScalarOf(c.type, 0).get(),
                                          gradient.tensor(), gradient.data()));
  gradient.Expect(expected);
}

INSTANTIATE_TEST_SUITE_P(Cases, ConvolutionTest, testing::ValuesIn(kCases));

using ConvolutionQuestionsTest = DnnTest;

TEST_F(ConvolutionQuestionsTest, ThereIsOneAlgorithmWithoutAWorkspace) {
  Convolution conv(Case{});
  cudnnConvolutionFwdAlgoPerf_t found[3];
  int count = 0;
  ASSERT_DNN(cudnnGetConvolutionForwardAlgorithm_v7(handle_, conv.x.tensor(), conv.w.filter(),
                                                    conv.descriptor, conv.y.tensor(), 3, &count,
                                                    found));
  EXPECT_EQ(count, 1);
  std::size_t bytes = 1;
  ASSERT_DNN(cudnnGetConvolutionForwardWorkspaceSize(handle_, conv.x.tensor(), conv.w.filter(),
                                                     conv.descriptor, conv.y.tensor(),
                                                     found[0].algo, &bytes));
  EXPECT_EQ(bytes, found[0].memory);
}

TEST_F(ConvolutionQuestionsTest, OutputsFollowFromTheOthers) {
  Convolution conv(Case{.padding = 0, .stride = 2});
  int dims[4] = {};
  ASSERT_DNN(cudnnGetConvolutionNdForwardOutputDim(conv.descriptor, conv.x.tensor(),
                                                   conv.w.filter(), 4, dims));
  EXPECT_EQ(Dims(dims, dims + 4), conv.y.dims());
  EXPECT_EQ(cudnnConvolutionForward(
                handle_, ScalarOf(CUDNN_DATA_FLOAT, 1).get(), conv.x.tensor(), conv.x.data(),
                conv.w.filter(), conv.w.data(), conv.descriptor, CUDNN_CONVOLUTION_FWD_ALGO_GEMM,
                nullptr, 0, ScalarOf(CUDNN_DATA_FLOAT, 0).get(), conv.x.tensor(), conv.x.data()),
            CUDNN_STATUS_BAD_PARAM);
}

TEST_F(ConvolutionQuestionsTest, AWrongAddressIsAnError) {
  Convolution conv(Case{});
  EXPECT_EQ(cudnnConvolutionForward(
                handle_, ScalarOf(CUDNN_DATA_FLOAT, 1).get(), conv.x.tensor(), nullptr,
                conv.w.filter(), conv.w.data(), conv.descriptor, CUDNN_CONVOLUTION_FWD_ALGO_GEMM,
                nullptr, 0, ScalarOf(CUDNN_DATA_FLOAT, 0).get(), conv.y.tensor(), conv.y.data()),
            CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER);
}

TEST_F(ConvolutionQuestionsTest, ThreeDimensions) {
  DeviceTensor x(CUDNN_DATA_FLOAT, {1, 2, 3, 4, 5}, CUDNN_TENSOR_NCHW, 1);
  DeviceTensor w(CUDNN_DATA_FLOAT, {1, 2, 3, 4, 5}, CUDNN_TENSOR_NCHW, 2);
  DeviceTensor y(CUDNN_DATA_FLOAT, {1, 1, 1, 1, 1});
  cudnnConvolutionDescriptor_t convolution = nullptr;
  ASSERT_DNN(cudnnCreateConvolutionDescriptor(&convolution));
  const int zeros[] = {0, 0, 0};
  const int ones[] = {1, 1, 1};
  ASSERT_DNN(cudnnSetConvolutionNdDescriptor(convolution, 3, zeros, ones, ones,
                                             CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
  double expected = 0;
  for (std::size_t i = 0; i < x.values().size(); ++i) expected += x[i] * w[i];
  ASSERT_DNN(cudnnConvolutionForward(handle_, ScalarOf(CUDNN_DATA_FLOAT, 1).get(), x.tensor(),
                                     x.data(), w.filter(), w.data(), convolution,
                                     CUDNN_CONVOLUTION_FWD_ALGO_GEMM, nullptr, 0,
                                     ScalarOf(CUDNN_DATA_FLOAT, 0).get(), y.tensor(), y.data()));
  y.Expect({expected});
  cudnnDestroyConvolutionDescriptor(convolution);
}

}  // namespace
}  // namespace torpor::emulator
