// The spatial transformer of the emulated cuDNN against its definition in double: a pixel
// counts the less the farther away it is, up to its neighbours, where it does not count.
#include <algorithm>
#include <limits>

#include "tests/emulator/dnn/dnn_fixture.h"

namespace torpor::emulator {
namespace {

constexpr int kImages = 2;
constexpr int kChannels = 3;
constexpr int kRows = 4;  // of the source
constexpr int kColumns = 5;
constexpr int kRowsMade = 3;
constexpr int kColumnsMade = 6;
constexpr std::size_t kSource = std::size_t{kRows} * kColumns;
constexpr std::size_t kMade = std::size_t{kRowsMade} * kColumnsMade;

class SpatialTransformerTest : public DnnTest, public testing::WithParamInterface<cudnnDataType_t> {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(DnnTest::SetUp());
    ASSERT_DNN(cudnnCreateSpatialTransformerDescriptor(&transformer_));
    ASSERT_DNN(cudnnSetSpatialTransformerNdDescriptor(transformer_, CUDNN_SAMPLER_BILINEAR, type_,
                                                      4, made_shape_.data()));
  }
  void TearDown() override {
    cudnnDestroySpatialTransformerDescriptor(transformer_);
    DnnTest::TearDown();
  }
  cudnnStatus_t Sample(double alpha, const DeviceTensor& x, const DeviceTensor& grid, double beta,
                       const DeviceTensor& y) {
    return cudnnSpatialTfSamplerForward(handle_, transformer_, ScalarOf(type_, alpha).get(),
                                        x.tensor(), x.data(), grid.data(),
                                        ScalarOf(type_, beta).get(), y.tensor(), y.data());
  }
  cudnnStatus_t Differentiate(const DeviceTensor& x, const DeviceTensor& grid,
                              const DeviceTensor& dy, double alpha, double beta,
                              const DeviceTensor& dx, const DeviceTensor& dgrid) {
    const ScalarOf a(type_, alpha);
    const ScalarOf b(type_, beta);
    return cudnnSpatialTfSamplerBackward(handle_, transformer_, a.get(), x.tensor(), x.data(),
                                         b.get(), dx.tensor(), dx.data(), a.get(), dy.tensor(),
                                         dy.data(), grid.data(), b.get(), dgrid.data());
  }

  const cudnnDataType_t type_ = GetParam();
  const Dims source_shape_ = {kImages, kChannels, kRows, kColumns};
  const Dims made_shape_ = {kImages, kChannels, kRowsMade, kColumnsMade};
  const Dims grid_shape_ = {kImages, kRowsMade, kColumnsMade, 2};
  const Dims theta_shape_ = {kImages, 2, 3};
  cudnnSpatialTransformerDescriptor_t transformer_ = nullptr;
};

INSTANTIATE_TEST_SUITE_P(Types, SpatialTransformerTest,
                         testing::Values(CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE, CUDNN_DATA_HALF));

double Hat(double away) { return std::fmax(0, 1 - std::fabs(away)); }

// How much a pixel of the source counts where the grid says (x, y).
double WeightOf(int row, int column, double x, double y) {
  return Hat((x + 1) / 2 * (kColumns - 1) - column) * Hat((y + 1) / 2 * (kRows - 1) - row);
}

// Element (plane, p) of what is made; a plane is a channel of an image.
double Made(const std::vector<double>& x, std::size_t plane, double grid_x, double grid_y) {
  double sum = 0;
  for (int row = 0; row < kRows; ++row) {
    for (int column = 0; column < kColumns; ++column) {
      const int pixel = row * kColumns + column;
      sum += WeightOf(row, column, grid_x, grid_y) *
             x[plane * kSource + static_cast<std::size_t>(pixel)];
    }
  }
  return sum;
}

std::vector<double> MadeOf(const std::vector<double>& x, const std::vector<double>& grid) {
  std::vector<double> y(kMade * kImages * kChannels);
  for (std::size_t i = 0; i < y.size(); ++i) {
    const std::size_t point = i / kMade / kChannels * kMade + i % kMade;
    y[i] = Made(x, i / kMade, grid[2 * point], grid[2 * point + 1]);
  }
  return y;
}

// A grid that reaches over the edges.
void Widen(DeviceTensor& grid) {
  for (double& coordinate : grid.values()) coordinate *= 1.5;
  grid.Upload();
}

TEST_P(SpatialTransformerTest, SamplesLieBetweenPixelsAndOutsideAreZeros) {
  const DeviceTensor x(type_, source_shape_, CUDNN_TENSOR_NHWC, 1);
  DeviceTensor grid(type_, grid_shape_, CUDNN_TENSOR_NCHW, 2);
  Widen(grid);
  DeviceTensor y(type_, made_shape_);
  ASSERT_DNN(Sample(1, x, grid, 0, y));
  y.Expect(MadeOf(x.values(), grid.values()));
}

TEST_P(SpatialTransformerTest, WhatWasThereIsBlendedIn) {
  const DeviceTensor x(type_, source_shape_, CUDNN_TENSOR_NCHW, 1);
  const DeviceTensor grid(type_, grid_shape_, CUDNN_TENSOR_NCHW, 2);
  DeviceTensor y(type_, made_shape_, CUDNN_TENSOR_NHWC, 3);
  std::vector<double> expected = MadeOf(x.values(), grid.values());
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = 0.5 * expected[i] + 2 * y[i];
  ASSERT_DNN(Sample(0.5, x, grid, 2, y));
  y.Expect(expected);
}

TEST_P(SpatialTransformerTest, CornersAreTheCornerPixels) {
  const DeviceTensor x(type_, source_shape_, CUDNN_TENSOR_NCHW, 1);
  DeviceTensor grid(type_, grid_shape_);
  std::fill(grid.values().begin(), grid.values().end(), -1);
  grid.values()[2] = grid.values()[3] = 1;
  grid.values()[4] = std::numeric_limits<double>::quiet_NaN();
  grid.values()[6] = std::numeric_limits<double>::infinity();
  grid.Upload();
  DeviceTensor y(type_, made_shape_);
  ASSERT_DNN(Sample(1, x, grid, 0, y));
  y.Download();
  EXPECT_EQ(y[0], x[0]);
  EXPECT_EQ(y[1], x[kSource - 1]);
  EXPECT_EQ(y[2], 0) << "what is no number lies outside";
  EXPECT_EQ(y[3], 0);
}

TEST_P(SpatialTransformerTest, GradientsOfSampling) {
  const DeviceTensor x(type_, source_shape_, CUDNN_TENSOR_NCHW, 1);
  DeviceTensor grid(type_, grid_shape_, CUDNN_TENSOR_NCHW, 2);
  Widen(grid);
  const DeviceTensor dy(type_, made_shape_, CUDNN_TENSOR_NHWC, 3);
  DeviceTensor dx(type_, source_shape_, CUDNN_TENSOR_NHWC, 4);
  DeviceTensor dgrid(type_, grid_shape_, CUDNN_TENSOR_NCHW, 5);
  std::vector<double> expected_dx = dx.values();
  std::vector<double> expected_dgrid = dgrid.values();
  for (double& value : expected_dx) value *= 0.5;
  for (double& value : expected_dgrid) value *= 0.5;
  constexpr double kStep = 1e-7;
  for (std::size_t i = 0; i < dy.values().size(); ++i) {
    const std::size_t plane = i / kMade;
    const std::size_t point = plane / kChannels * kMade + i % kMade;
    const double at_x = grid[2 * point];
    const double at_y = grid[2 * point + 1];
    for (std::size_t pixel = 0; pixel < kSource; ++pixel) {
      const int row = static_cast<int>(pixel) / kColumns;
      const int column = static_cast<int>(pixel) % kColumns;
      expected_dx[plane * kSource + pixel] += 2 * WeightOf(row, column, at_x, at_y) * dy[i];
    }
    const auto slope = [&](double more, double less) { return (more - less) / (2 * kStep); };
    expected_dgrid[2 * point] += 2 * dy[i] *
                                 slope(Made(x.values(), plane, at_x + kStep, at_y),
                                       Made(x.values(), plane, at_x - kStep, at_y));
    expected_dgrid[2 * point + 1] += 2 * dy[i] *
                                     slope(Made(x.values(), plane, at_x, at_y + kStep),
                                           Made(x.values(), plane, at_x, at_y - kStep));
  }
  ASSERT_DNN(Differentiate(x, grid, dy, 2, 0.5, dx, dgrid));
  dx.Expect(expected_dx);
  dgrid.Download();
  for (std::size_t i = 0; i < expected_dgrid.size(); ++i) {
    ASSERT_NEAR(dgrid[i], expected_dgrid[i],
                std::fmax(ToleranceOf(type_), 1e-7) * (1 + std::fabs(expected_dgrid[i])));
  }
}

// The pixels' coordinates, written down.
const double kMadeX[kColumnsMade] = {-1, -0.6, -0.2, 0.2, 0.6, 1};
const double kMadeY[kRowsMade] = {-1, 0, 1};

TEST_P(SpatialTransformerTest, GridsOfAffineMapsAndTheirGradient) {
  const DeviceTensor theta(type_, theta_shape_, CUDNN_TENSOR_NCHW, 1);
  DeviceTensor grid(type_, grid_shape_);
  const DeviceTensor dgrid(type_, grid_shape_, CUDNN_TENSOR_NCHW, 2);
  DeviceTensor dtheta(type_, theta_shape_);
  std::vector<double> expected(grid.values().size());
  std::vector<double> expected_dtheta(theta.values().size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const std::size_t pixel = i / 2 % kMade;
    const double coordinates[] = {kMadeX[pixel % kColumnsMade], kMadeY[pixel / kColumnsMade], 1};
    const std::size_t row_of_map = i / 2 / kMade * 6 + i % 2 * 3;
    for (std::size_t k = 0; k < 3; ++k) {
      expected[i] += theta[row_of_map + k] * coordinates[k];
      expected_dtheta[row_of_map + k] += dgrid[i] * coordinates[k];
    }
  }
  ASSERT_DNN(cudnnSpatialTfGridGeneratorForward(handle_, transformer_, theta.data(), grid.data()));
  grid.Expect(expected);
  ASSERT_DNN(
      cudnnSpatialTfGridGeneratorBackward(handle_, transformer_, dgrid.data(), dtheta.data()));
  dtheta.Expect(expected_dtheta);
}

using SpatialTransformerRefusalTest = SpatialTransformerTest;
INSTANTIATE_TEST_SUITE_P(Types, SpatialTransformerRefusalTest, testing::Values(CUDNN_DATA_FLOAT));

TEST_P(SpatialTransformerRefusalTest, WhatDoesNotAgreeIsRefused) {
  const DeviceTensor x(type_, source_shape_);
  const DeviceTensor grid(type_, grid_shape_);
  const DeviceTensor y(type_, made_shape_);
  EXPECT_EQ(Sample(1, x, grid, 0, x), CUDNN_STATUS_BAD_PARAM) << "another size than is described";
  const DeviceTensor other(type_, {kImages, kChannels + 1, kRows, kColumns});
  EXPECT_EQ(Sample(1, other, grid, 0, y), CUDNN_STATUS_BAD_PARAM);
  const DeviceTensor half(CUDNN_DATA_HALF, source_shape_);
  EXPECT_EQ(Sample(1, half, grid, 0, y), CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE);
  const DeviceTensor small(type_, {1});
  EXPECT_EQ(Sample(1, x, small, 0, y), CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER)
      << "a grid beyond its memory";
}

TEST_P(SpatialTransformerRefusalTest, OnlyImagesOfFloatingTypesAreTransformed) {
  const auto set = [&](cudnnDataType_t type, const Dims& dims) {
    return cudnnSetSpatialTransformerNdDescriptor(transformer_, CUDNN_SAMPLER_BILINEAR, type,
                                                  static_cast<int>(dims.size()), dims.data());
  };
  EXPECT_EQ(set(type_, {1, 1, 2, 2, 2}), CUDNN_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(set(type_, {1, 1, 0, 2}), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(set(type_, {2, 1, 1 << 20, 1 << 20}), CUDNN_STATUS_BAD_PARAM);
  const DeviceTensor theta(type_, theta_shape_);
  const DeviceTensor grid(type_, grid_shape_);
  ASSERT_DNN(set(CUDNN_DATA_INT32, made_shape_));
  EXPECT_EQ(cudnnSpatialTfGridGeneratorForward(handle_, transformer_, theta.data(), grid.data()),
            CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE);
  cudnnSpatialTransformerDescriptor_t unset = nullptr;
  ASSERT_DNN(cudnnCreateSpatialTransformerDescriptor(&unset));
  EXPECT_EQ(cudnnSpatialTfGridGeneratorForward(handle_, unset, theta.data(), grid.data()),
            CUDNN_STATUS_BAD_PARAM);
  cudnnDestroySpatialTransformerDescriptor(unset);
}

}  // namespace
}  // namespace torpor::emulator
