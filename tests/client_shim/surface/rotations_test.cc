#include "client_shim/cublas/rotations.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <complex>
#include <limits>
#include <utility>

namespace torpor::shim {
namespace {

TEST(RotationsTest, RealRotationsZeroTheSecondNumber) {
  for (const auto& [a, b] : {std::pair(3.0, 4.0), std::pair(-4.0, 3.0), std::pair(0.0, 2.0),
                             std::pair(2.0, 0.0), std::pair(0.0, 0.0), std::pair(1e200, 1e200)}) {
    double r = a;
    double z = b;
    double c = 7;
    double s = 7;
    ASSERT_EQ(Rotg(&r, &z, &c, &s), CUBLAS_STATUS_SUCCESS);
    const double size = std::hypot(a, b);
    EXPECT_NEAR(c * a + s * b, r, 1e-15 * size);
    EXPECT_NEAR(c * b - s * a, 0, 1e-15 * size);
    EXPECT_NEAR(std::hypot(c, s), 1, 1e-15);
    EXPECT_NEAR(std::abs(r), size, 1e-15 * size);
  }
}

TEST(RotationsTest, WhatStandsForARotationGivesItBack) {
  float a = 3;
  float b = 4;
  float c = 0;
  float s = 0;
  Rotg(&a, &b, &c, &s);
  EXPECT_FLOAT_EQ(b, 1 / c);  // |b| was not the smaller one
  a = 4;
  b = 3;
  Rotg(&a, &b, &c, &s);
  EXPECT_FLOAT_EQ(b, s);
  EXPECT_EQ(Rotg(&a, &b, &c, static_cast<float*>(nullptr)), CUBLAS_STATUS_INVALID_VALUE);
}

TEST(RotationsTest, ComplexRotationsZeroTheSecondNumber) {
  using Complex = std::complex<double>;
  for (const auto& [a, b] :
       {std::pair(Complex(1, 2), Complex(-3, 0.5)), std::pair(Complex(0, 0), Complex(1, 1)),
        std::pair(Complex(2, 0), Complex(0, 0))}) {
    cuDoubleComplex r = {a.real(), a.imag()};
    const cuDoubleComplex second = {b.real(), b.imag()};
    double c = 7;
    cuDoubleComplex s = {7, 7};
    ASSERT_EQ(Rotg(&r, &second, &c, &s), CUBLAS_STATUS_SUCCESS);
    const Complex sine(s.x, s.y);
    EXPECT_LT(std::abs(c * a + sine * b - Complex(r.x, r.y)), 1e-14);
    EXPECT_LT(std::abs(c * b - std::conj(sine) * a), 1e-14);
  }
}

// The matrix that a flag and what is written beside it stand for.
std::array<double, 4> MatrixOf(const std::array<double, 5>& p) {
  if (p[0] == -2) return {1, 0, 0, 1};
  if (p[0] == -1) return {p[1], p[2], p[3], p[4]};
  if (p[0] == 0) return {1, p[2], p[3], 1};
  return {p[1], -1, 1, p[4]};
}

TEST(RotationsTest, ModifiedRotationsZeroTheSecondNumberAndKeepTheLength) {
  struct Case {
    double d1, d2, x1, y1;
  };
  for (const Case& given : {Case{2, 3, 4, 1}, Case{2, 3, 1, 4}, Case{1e-10, 3, 1, 4},
                            Case{1e10, 1e10, 5, 4}, Case{2, 3, 4, 0}, Case{2, 0, 4, 1}}) {
    double d1 = given.d1;
    double d2 = given.d2;
    double x1 = given.x1;
    std::array<double, 5> parameters{};
    ASSERT_EQ(Rotmg(&d1, &d2, &x1, &given.y1, parameters.data()), CUBLAS_STATUS_SUCCESS);
    const auto h = MatrixOf(parameters);
    const double before = given.d1 * given.x1 * given.x1 + given.d2 * given.y1 * given.y1;
    EXPECT_NEAR(h[0] * given.x1 + h[2] * given.y1, x1, 1e-12 * std::abs(x1));
    EXPECT_NEAR(d1 * x1 * x1, before, 1e-12 * before);
    if (parameters[0] == -2) continue;
    EXPECT_NEAR(h[1] * given.x1 + h[3] * given.y1, 0, 1e-12);
    EXPECT_LT(d1, 4096 * 4096);
    EXPECT_GT(d1, 1.0 / (4096 * 4096));
  }
  double negative = -1;
  double d2 = 1;
  double x1 = 1;
  const double y1 = 1;
  std::array<double, 5> parameters{};
  Rotmg(&negative, &d2, &x1, &y1, parameters.data());
  EXPECT_EQ(parameters[0], -1) << "a negative weight leaves nothing";
  EXPECT_EQ(x1, 0);
}

TEST(RotationsTest, WeightsThatAreNoNumbersComeToAnEnd) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  for (const double weight : {kInfinity, -kInfinity, kNone}) {
    for (const bool is_first : {true, false}) {
      double d1 = is_first ? weight : 1;
      double d2 = is_first ? 1 : weight;
      double x1 = 1;
      const double y1 = 1;
      std::array<double, 5> parameters{};
      EXPECT_EQ(Rotmg(&d1, &d2, &x1, &y1, parameters.data()), CUBLAS_STATUS_SUCCESS);
    }
  }
}

}  // namespace
}  // namespace torpor::shim
