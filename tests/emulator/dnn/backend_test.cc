// Operation graphs of the emulated cuDNN, against its legacy API and loops.
#include "tests/emulator/dnn/dnn_fixture.h"
#include "tests/nvidia/cudnn_backend.h"

namespace torpor::emulator {
namespace {

constexpr std::int64_t kX = 'x';
constexpr std::int64_t kW = 'w';
constexpr std::int64_t kY = 'y';

Backend Describe(std::int64_t id, const DeviceTensor& tensor, bool is_virtual = false) {
  const auto wide = [](const Dims& dims) { return Shape(dims.begin(), dims.end()); };
  return TensorOf(id, tensor.type(), wide(tensor.dims()), wide(tensor.strides()), is_virtual);
}

struct Case {
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  cudnnTensorFormat_t format = CUDNN_TENSOR_NCHW;
  int padding = 1;
  int stride = 1;
  int dilation = 1;
  int groups = 1;
  cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
};

int Extent(const Case& c, int length, int window) {
  return (length + 2 * c.padding - (window - 1) * c.dilation - 1) / c.stride + 1;
}

// A convolution in the words of both APIs.
class Convolution {
 public:
  explicit Convolution(const Case& c)
      : x(c.type, {2, 4, 9, 7}, c.format, 1),
        w(c.type, {6, 4 / c.groups, 3, 2}, c.format, 2),
        y(c.type, {2, 6, Extent(c, 9, 3), Extent(c, 7, 2)}, c.format, 3),
        backend(ConvolutionOf({.before = {c.padding, c.padding},
                               .after = {c.padding, c.padding},
                               .strides = {c.stride, c.stride},
                               .dilation = {c.dilation, c.dilation},
                               .mode = c.mode,
                               .compute_type = ComputeType(c)})) {
    EXPECT_EQ(cudnnCreateConvolutionDescriptor(&legacy), CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(cudnnSetConvolution2dDescriptor(legacy, c.padding, c.padding, c.stride, c.stride,
                                              c.dilation, c.dilation, c.mode, ComputeType(c)),
              CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(cudnnSetConvolutionGroupCount(legacy, c.groups), CUDNN_STATUS_SUCCESS);
  }
  ~Convolution() { cudnnDestroyConvolutionDescriptor(legacy); }
  Convolution(const Convolution&) = delete;
  Convolution& operator=(const Convolution&) = delete;

  static cudnnDataType_t ComputeType(const Case& c) {
    return c.type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
  }

  DeviceTensor x;
  DeviceTensor w;
  DeviceTensor y;
  Backend backend;
  cudnnConvolutionDescriptor_t legacy = nullptr;
};

class BackendTest : public DnnTest {
 protected:
  // On the three tensors of a convolution.
  void Execute(const Backend& operation, const Convolution& c) {
    Execute(GraphOf(handle_, {&operation}),
            PackOf({kX, kW, kY}, {c.x.data(), c.w.data(), c.y.data()}));
  }
  void Execute(const Backend& graph, const Backend& pack) {
    EXPECT_EQ(cudnnBackendExecute(handle_, PlanOf(graph).real(), pack.real()),
              CUDNN_STATUS_SUCCESS);
  }
};

class BackendConvolutionTest : public BackendTest, public testing::WithParamInterface<Case> {};

TEST_P(BackendConvolutionTest, Forward) {
  const Case c = GetParam();
  Convolution conv(c);
  DeviceTensor expected(c.type, conv.y.dims(), c.format, 3);
  const ScalarOf two(c.type, 2);
  const ScalarOf half(c.type, 0.5);
  ASSERT_DNN(cudnnConvolutionForward(handle_, two.get(), conv.x.tensor(), conv.x.data(),
                                     conv.w.filter(), conv.w.data(), conv.legacy,
                                     CUDNN_CONVOLUTION_FWD_ALGO_GEMM, nullptr, 0, half.get(),
                                     expected.tensor(), expected.data()));
  expected.Download();
  Execute(ForwardOf(conv.backend, Describe(kX, conv.x), Describe(kW, conv.w), Describe(kY, conv.y),
                    2, 0.5f),
          conv);
  conv.y.Expect(expected.values());
}

TEST_P(BackendConvolutionTest, BackwardData) {
  const Case c = GetParam();
  Convolution conv(c);
  DeviceTensor expected(c.type, conv.x.dims(), c.format, 3);
  const ScalarOf one(c.type, 1);
  const ScalarOf zero(c.type, 0);
  ASSERT_DNN(cudnnConvolutionBackwardData(handle_, one.get(), conv.w.filter(), conv.w.data(),
                                          conv.y.tensor(), conv.y.data(), conv.legacy,
                                          CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, nullptr, 0, zero.get(),
                                          expected.tensor(), expected.data()));
  expected.Download();
  Execute(BackwardDataOf(conv.backend, Describe(kX, conv.x), Describe(kW, conv.w),
                         Describe(kY, conv.y)),
          conv);
  conv.x.Expect(expected.values());
}

TEST_P(BackendConvolutionTest, BackwardFilter) {
  const Case c = GetParam();
  Convolution conv(c);
  DeviceTensor expected(c.type, conv.w.dims(), c.format, 3);
  const ScalarOf one(c.type, 1);
  const ScalarOf zero(c.type, 0);
  ASSERT_DNN(cudnnConvolutionBackwardFilter(handle_, one.get(), conv.x.tensor(), conv.x.data(),
                                            conv.y.tensor(), conv.y.data(), conv.legacy,
                                            CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, nullptr, 0,
                                            zero.get(), expected.filter(), expected.data()));
  expected.Download();
  Execute(BackwardFilterOf(conv.backend, Describe(kX, conv.x), Describe(kW, conv.w),
                           Describe(kY, conv.y)),
          conv);
  conv.w.Expect(expected.values());
}

INSTANTIATE_TEST_SUITE_P(
    Cases, BackendConvolutionTest,
    testing::Values(Case{}, Case{.format = CUDNN_TENSOR_NHWC},
                    Case{.padding = 2, .stride = 2, .dilation = 2, .groups = 2},
                    Case{.mode = CUDNN_CONVOLUTION}, Case{.type = CUDNN_DATA_DOUBLE, .groups = 2},
                    Case{.type = CUDNN_DATA_HALF, .format = CUDNN_TENSOR_NHWC, .stride = 3},
                    Case{.type = CUDNN_DATA_BFLOAT16, .padding = 0}));

TEST_F(BackendTest, WhatFollowsAConvolutionIsComputedWithIt) {
  Convolution conv({.type = CUDNN_DATA_HALF});
  DeviceTensor product(CUDNN_DATA_FLOAT, conv.y.dims());
  DeviceTensor z(CUDNN_DATA_HALF, conv.y.dims(), CUDNN_TENSOR_NCHW, 4);
  DeviceTensor bias(CUDNN_DATA_HALF, {1, 6, 1, 1}, CUDNN_TENSOR_NCHW, 5);
  const Backend c = Describe('C', product, true);
  const Backend a = Describe('A', product, true);
  const Backend b = Describe('B', product, true);
  const Backend added = Describe('z', z);
  const Backend biases = Describe('b', bias);
  const Backend convolve = ForwardOf(conv.backend, Describe(kX, conv.x), Describe(kW, conv.w), c);
  const Backend add = PointwiseOf(CUDNN_POINTWISE_ADD, c, &added, a, 1, 0.5f);
  const Backend add_bias = PointwiseOf(CUDNN_POINTWISE_ADD, a, &biases, b);
  const Backend relu = PointwiseOf(CUDNN_POINTWISE_RELU_FWD, b, nullptr, Describe(kY, conv.y));
  Execute(GraphOf(handle_, {&convolve, &add, &add_bias, &relu}),
          PackOf({kX, kW, kY, 'z', 'b'},
                 {conv.x.data(), conv.w.data(), conv.y.data(), z.data(), bias.data()}));

  const Backend alone =
      ForwardOf(conv.backend, Describe(kX, conv.x), Describe(kW, conv.w), Describe(kY, product));
  Execute(GraphOf(handle_, {&alone}),
          PackOf({kX, kW, kY}, {conv.x.data(), conv.w.data(), product.data()}));
  product.Download();
  std::vector<double> expected = product.values();
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const std::size_t channel = i / (expected.size() / 2 / 6) % 6;
    expected[i] = std::max(0.0, expected[i] + 0.5 * z[i] + bias[channel]);
  }
  conv.y.Expect(expected);
}

TEST_F(BackendTest, PaddingMayDifferBetweenTheSides) {
  DeviceTensor x(CUDNN_DATA_FLOAT, {1, 1, 1, 4}, CUDNN_TENSOR_NCHW, 1);
  DeviceTensor w(CUDNN_DATA_FLOAT, {1, 1, 1, 2}, CUDNN_TENSOR_NCHW, 2);
  DeviceTensor y(CUDNN_DATA_FLOAT, {1, 1, 1, 5});
  const Backend convolution = ConvolutionOf({.before = {0, 2}});
  const Backend forward = ForwardOf(convolution, Describe(kX, x), Describe(kW, w), Describe(kY, y));
  Execute(GraphOf(handle_, {&forward}), PackOf({kX, kW, kY}, {x.data(), w.data(), y.data()}));
  y.Expect({0, x[0] * w[1], x[0] * w[0] + x[1] * w[1], x[1] * w[0] + x[2] * w[1],
            x[2] * w[0] + x[3] * w[1]});
}

TEST_F(BackendTest, FunctionsOfEachElement) {
  DeviceTensor x(CUDNN_DATA_FLOAT, {2, 3, 4, 5}, CUDNN_TENSOR_NHWC, 1);
  DeviceTensor y(CUDNN_DATA_FLOAT, {2, 3, 4, 5});
  const auto expect = [&](cudnnPointwiseMode_t mode, float alpha, auto function) {
    const Backend operation = PointwiseOf(mode, Describe(kX, x), nullptr, Describe(kY, y), alpha);
    Execute(GraphOf(handle_, {&operation}), PackOf({kX, kY}, {x.data(), y.data()}));
    std::vector<double> expected = x.values();
    for (double& value : expected) value = function(alpha * value);
    y.Expect(expected);
  };
  expect(CUDNN_POINTWISE_IDENTITY, 3, [](double value) { return value; });
  expect(CUDNN_POINTWISE_SIGMOID_FWD, 1, [](double value) { return 1 / (1 + std::exp(-value)); });
  expect(CUDNN_POINTWISE_GELU_FWD, 1,
         [](double value) { return value / 2 * (1 + std::erf(value / std::sqrt(2.0))); });
}

TEST_F(BackendTest, AnOperandTimesZeroIsNotLookedAt) {
  DeviceTensor x(CUDNN_DATA_FLOAT, {1, 1, 1, 3}, CUDNN_TENSOR_NCHW, 1);
  DeviceTensor b(CUDNN_DATA_FLOAT, {1, 1, 1, 3});
  DeviceTensor y(CUDNN_DATA_FLOAT, {1, 1, 1, 3});
  b.values().assign(3, std::nan(""));
  b.Upload();
  const Backend other = Describe('b', b);
  const Backend add =
      PointwiseOf(CUDNN_POINTWISE_ADD, Describe(kX, x), &other, Describe(kY, y), 1, 0);
  Execute(GraphOf(handle_, {&add}), PackOf({kX, 'b', kY}, {x.data(), b.data(), y.data()}));
  y.Expect(x.values());
}

TEST_F(BackendTest, WhatIsNotComputedIsRefused) {
  const Backend whole = PointwiseOf(
      CUDNN_POINTWISE_IDENTITY, TensorOf(kX, CUDNN_DATA_INT32, {1, 1, 1, 4}, {4, 4, 4, 1}), nullptr,
      TensorOf(kY, CUDNN_DATA_INT32, {1, 1, 1, 4}, {4, 4, 4, 1}));
  EXPECT_EQ(HeuristicOf(GraphOf(handle_, {&whole})).TryFinalize(),
            CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN);
}

TEST_F(BackendTest, AWrongAddressIsRefused) {
  Convolution conv({});
  const Backend forward =
      ForwardOf(conv.backend, Describe(kX, conv.x), Describe(kW, conv.w), Describe(kY, conv.y));
  const Backend pack = PackOf({kX, kW, kY}, {conv.x.data(), conv.w.data(),
                                             reinterpret_cast<void*>(std::uintptr_t{0x1000})});
  EXPECT_EQ(cudnnBackendExecute(handle_, PlanOf(GraphOf(handle_, {&forward})).real(), pack.real()),
            CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER);
  EXPECT_EQ(cudnnBackendExecute(handle_, pack.real(), pack.real()),
            CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE);
}

}  // namespace
}  // namespace torpor::emulator
