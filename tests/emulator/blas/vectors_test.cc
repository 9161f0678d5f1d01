// Level 1, in every precision.
#include <cmath>
#include <memory>

#include "tests/emulator/blas/typed_blas.h"

namespace torpor::emulator {
namespace {

constexpr int kN = 11;
constexpr int kStepX = 2;
constexpr int kStepY = -3;

template <typename T>
class VectorsTest : public TypedBlasTest<T> {
 protected:
  const std::vector<T> x_ = this->Random(kN * 3);
  const std::vector<T> y_ = this->Random(kN * 3);
  // Made when the driver runs.
  std::unique_ptr<Array<T>> device_x_;
  std::unique_ptr<Array<T>> device_y_;

  void SetUp() override {
    TypedBlasTest<T>::SetUp();
    device_x_ = std::make_unique<Array<T>>(x_);
    device_y_ = std::make_unique<Array<T>>(y_);
  }
  auto x() const { return P(device_x_->get()); }
  auto y() const { return P(device_y_->get()); }
  Dense X() const { return Column(x_, kN, kStepX); }
  Dense Y() const { return Column(y_, kN, kStepY); }
  Dense GotX() { return Column(device_x_->Download(this->stream_), kN, kStepX); }
  Dense GotY() { return Column(device_y_->Download(this->stream_), kN, kStepY); }
};
TYPED_TEST_SUITE(VectorsTest, ElementTypes);

TYPED_TEST(VectorsTest, AxpyScalCopySwap) {
  using T = TypeParam;
  const auto alpha = this->Alpha();
  ASSERT_BLAS(ByType<T>(cublasSaxpy, cublasDaxpy, cublasCaxpy, cublasZaxpy)(
      this->handle_, kN, alpha.get(), this->x(), kStepX, this->y(), kStepY));
  const Dense sum = Wide(alpha) * this->X() + this->Y();
  this->ExpectNear(this->GotY(), sum, "axpy");
  ASSERT_BLAS(ByType<T>(cublasSscal, cublasDscal, cublasCscal, cublasZscal)(
      this->handle_, kN, alpha.get(), this->x(), kStepX));
  const Dense scaled = Wide(alpha) * this->X();
  this->ExpectNear(this->GotX(), scaled, "scal");
  ASSERT_BLAS(ByType<T>(cublasSswap, cublasDswap, cublasCswap, cublasZswap)(
      this->handle_, kN, this->x(), kStepX, this->y(), kStepY));
  this->ExpectNear(this->GotX(), sum, "swap");
  this->ExpectNear(this->GotY(), scaled, "swap");
  ASSERT_BLAS(ByType<T>(cublasScopy, cublasDcopy, cublasCcopy, cublasZcopy)(
      this->handle_, kN, this->x(), kStepX, this->y(), kStepY));
  this->ExpectNear(this->GotY(), sum, "copy");
}

TYPED_TEST(VectorsTest, Dots) {
  using T = TypeParam;
  T dot{};
  ASSERT_BLAS(ByType<T>(cublasSdot, cublasDdot, cublasCdotu, cublasZdotu)(
      this->handle_, kN, this->x(), kStepX, this->y(), kStepY, P(&dot)));
  Dense got(1, 1);
  got(0, 0) = Wide(dot);
  this->ExpectNear(got, Op(this->X(), CUBLAS_OP_T) * this->Y(), "dotu");
  ASSERT_BLAS(ByType<T>(cublasSdot, cublasDdot, cublasCdotc, cublasZdotc)(
      this->handle_, kN, this->x(), kStepX, this->y(), kStepY, P(&dot)));
  got(0, 0) = Wide(dot);
  this->ExpectNear(got, Op(this->X(), CUBLAS_OP_C) * this->Y(), "dotc");
}

TYPED_TEST(VectorsTest, NormsAndExtremes) {
  using T = TypeParam;
  const Dense x = this->X();
  double squares = 0;
  double sum = 0;
  int largest = 0;
  int smallest = 0;
  const auto size = [&](int i) { return std::abs(x(i, 0).real()) + std::abs(x(i, 0).imag()); };
  for (int i = 0; i < kN; ++i) {
    squares += std::norm(x(i, 0));
    sum += size(i);
    if (size(i) > size(largest)) largest = i;
    if (size(i) < size(smallest)) smallest = i;
  }
  Real<T> result{};
  ASSERT_BLAS(ByType<T>(cublasSnrm2, cublasDnrm2, cublasScnrm2, cublasDznrm2)(
      this->handle_, kN, this->x(), kStepX, &result));
  EXPECT_NEAR(static_cast<double>(result), std::sqrt(squares), this->kTolerance);
  ASSERT_BLAS(ByType<T>(cublasSasum, cublasDasum, cublasScasum, cublasDzasum)(
      this->handle_, kN, this->x(), kStepX, &result));
  EXPECT_NEAR(static_cast<double>(result), sum, this->kTolerance);
  int index = 0;
  ASSERT_BLAS(ByType<T>(cublasIsamax, cublasIdamax, cublasIcamax, cublasIzamax)(
      this->handle_, kN, this->x(), kStepX, &index));
  EXPECT_EQ(index, largest + 1);
  ASSERT_BLAS(ByType<T>(cublasIsamin, cublasIdamin, cublasIcamin, cublasIzamin)(
      this->handle_, kN, this->x(), kStepX, &index));
  EXPECT_EQ(index, smallest + 1);
}

TYPED_TEST(VectorsTest, Rotation) {
  using T = TypeParam;
  const auto cosine = static_cast<Real<T>>(0.6);
  T sine = T(static_cast<Real<T>>(0.8));
  if constexpr (kIsComplex<T>) sine = T(0.48F, 0.64F);
  ASSERT_BLAS(ByType<T>(cublasSrot, cublasDrot, cublasCrot, cublasZrot)(
      this->handle_, kN, this->x(), kStepX, this->y(), kStepY, &cosine, P(&sine)));
  const Wide c = static_cast<double>(cosine);
  const Wide s = Wide(sine);
  this->ExpectNear(this->GotX(), c * this->X() + s * this->Y(), "rot x");
  this->ExpectNear(this->GotY(), c * this->Y() + -std::conj(s) * this->X(), "rot y");
}

using RealVectorsTest = BlasTest;

TEST_F(RealVectorsTest, ModifiedRotation) {
  Array<double> x({1, 2});
  Array<double> y({10, 20});
  // Flag -1: the matrix {{2, 3}, {4, 5}} as it stands, by columns.
  const double parameters[] = {-1, 2, 4, 3, 5};
  ASSERT_BLAS(cublasDrotm(handle_, 2, x.get(), 1, y.get(), 1, parameters));
  EXPECT_EQ(x.Download(stream_), (std::vector<double>{32, 64}));
  EXPECT_EQ(y.Download(stream_), (std::vector<double>{54, 108}));
}

TEST_F(RealVectorsTest, GivensRotationsOnHostAndDevice) {
  float a = 3;
  float b = 4;
  float c = 0;
  float s = 0;
  ASSERT_BLAS(cublasSrotg(handle_, &a, &b, &c, &s));
  EXPECT_FLOAT_EQ(a, 5);
  EXPECT_FLOAT_EQ(c, 0.6F);
  EXPECT_FLOAT_EQ(s, 0.8F);
  Array<float> values({3, 4, 0, 0});
  float* const device = values.get();
  ASSERT_BLAS(cublasSetPointerMode(handle_, CUBLAS_POINTER_MODE_DEVICE));
  ASSERT_BLAS(cublasSrotg(handle_, device, device + 1, device + 2, device + 3));
  EXPECT_FLOAT_EQ(values.Download(stream_)[0], 5);
  EXPECT_FLOAT_EQ(values.Download(stream_)[3], 0.8F);
}

TEST_F(RealVectorsTest, RealFactorsOfComplexVectors) {
  using C = std::complex<float>;
  Array<C> x({C(1, 2), C(3, 4)});
  const float two = 2;
  ASSERT_BLAS(cublasCsscal(handle_, 2, &two, P(x.get()), 1));
  EXPECT_EQ(x.Download(stream_), (std::vector<C>{C(2, 4), C(6, 8)}));
  Array<C> y({C(1, 0), C(0, 1)});
  const float c = 0;
  const float s = 1;
  ASSERT_BLAS(cublasCsrot(handle_, 2, P(x.get()), 1, P(y.get()), 1, &c, &s));
  EXPECT_EQ(x.Download(stream_), (std::vector<C>{C(1, 0), C(0, 1)}));
  EXPECT_EQ(y.Download(stream_), (std::vector<C>{C(-2, -4), C(-6, -8)}));
}

TEST_F(RealVectorsTest, MixedTypes) {
  // 1.5 is 0x3e00, 2.0 is 0x4000, 5.0 is 0x4500 in half precision.
  Array<std::uint16_t> half({0x3e00, 0x4000});
  Array<float> wide({2, 3});
  const float two = 2;
  ASSERT_BLAS(cublasAxpyEx(handle_, 2, &two, CUDA_R_32F, half.get(), CUDA_R_16F, 1, wide.get(),
                           CUDA_R_32F, 1, CUDA_R_32F));
  EXPECT_EQ(wide.Download(stream_), (std::vector<float>{5, 7}));
  ASSERT_BLAS(cublasScalEx(handle_, 2, &two, CUDA_R_32F, half.get(), CUDA_R_16F, 1, CUDA_R_32F));
  EXPECT_EQ(half.Download(stream_), (std::vector<std::uint16_t>{0x4200, 0x4400}));  // 3 and 4
  std::uint16_t norm = 0;
  ASSERT_BLAS(cublasNrm2Ex(handle_, 2, half.get(), CUDA_R_16F, 1, &norm, CUDA_R_16F, CUDA_R_32F));
  EXPECT_EQ(norm, 0x4500);
  std::uint16_t dot = 0;
  ASSERT_BLAS(cublasDotEx(handle_, 2, half.get(), CUDA_R_16F, 1, half.get(), CUDA_R_16F, 1, &dot,
                          CUDA_R_16F, CUDA_R_32F));
  EXPECT_EQ(dot, 0x4e40);  // 25
  float wide_dot = 0;
  EXPECT_EQ(cublasDotEx(handle_, 2, half.get(), CUDA_R_16F, 1, half.get(), CUDA_R_16F, 1, &wide_dot,
                        CUDA_R_32F, CUDA_R_32F),
            CUBLAS_STATUS_NOT_SUPPORTED);
}

}  // namespace
}  // namespace torpor::emulator
