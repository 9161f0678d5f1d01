#include "client_shim/cublas/rotations.h"

#include <algorithm>
#include <cmath>
#include <complex>

namespace torpor::shim {
namespace {

// Replaces std::hypot, which would require a newer libm.
template <typename T>
T Length(T a, T b) {
  const T larger = std::max(std::abs(a), std::abs(b));
  if (larger == 0 || std::isinf(larger)) return larger;
  const T ratio = std::min(std::abs(a), std::abs(b)) / larger;
  return larger * std::sqrt(1 + ratio * ratio);
}

template <typename T>
cublasStatus_t RealRotg(T* a, T* b, T* c, T* s) {
  if (!a || !b || !c || !s) return CUBLAS_STATUS_INVALID_VALUE;
  const bool a_is_larger = std::abs(*a) > std::abs(*b);
  const T length = std::copysign(Length(*a, *b), a_is_larger ? *a : *b);
  if (length == 0) {
    *c = 1;
    *s = *a = *b = 0;
    return CUBLAS_STATUS_SUCCESS;
  }
  *c = *a / length;
  *s = *b / length;
  *a = length;
  if (a_is_larger) {
    *b = *s;
  } else {
    *b = *c == 0 ? T(1) : 1 / *c;
  }
  return CUBLAS_STATUS_SUCCESS;
}

template <typename T, typename Number>
cublasStatus_t ComplexRotg(Number* a, const Number* b, T* c, Number* s) {
  if (!a || !b || !c || !s) return CUBLAS_STATUS_INVALID_VALUE;
  const std::complex<T> first(a->x, a->y);
  const std::complex<T> second(b->x, b->y);
  const T size = Length(first.real(), first.imag());
  if (size == 0) {
    *c = 0;
    *s = {1, 0};
    *a = *b;
    return CUBLAS_STATUS_SUCCESS;
  }
  const T length = Length(size, Length(second.real(), second.imag()));
  const std::complex<T> direction = first / size;
  const std::complex<T> sine = direction * std::conj(second) / length;
  const std::complex<T> turned = direction * length;
  *c = size / length;
  *s = {sine.real(), sine.imag()};
  *a = {turned.real(), turned.imag()};
  return CUBLAS_STATUS_SUCCESS;
}

// The state of rotmg: the two weights, the first number, and the matrix with its flag.
template <typename T>
struct ModifiedRotation {
  T d1;
  T d2;
  T x1;
  T flag = -1;
  T h11 = 0;
  T h21 = 0;
  T h12 = 0;
  T h22 = 0;

  static constexpr T kGamma = 4096;

  // Makes all four elements of the matrix explicit.
  void WriteOut() {
    if (flag == 0) {
      h11 = h22 = 1;
    } else if (flag > 0) {
      h21 = -1;
      h12 = 1;
    }
    flag = -1;
  }

  void Make(T y1) {
    const T p2 = d2 * y1;
    const T p1 = d1 * x1;
    const T q2 = p2 * y1;
    const T q1 = p1 * x1;
    if (std::abs(q1) > std::abs(q2)) {
      h21 = -y1 / x1;
      h12 = p2 / p1;
      const T u = 1 - h12 * h21;
      if (u <= 0) return Vanish();
      flag = 0;
      d1 /= u;
      d2 /= u;
      x1 *= u;
    } else {
      if (q2 < 0) return Vanish();
      flag = 1;
      h11 = p1 / p2;
      h22 = x1 / y1;
      const T u = 1 + h11 * h22;
      const T smaller = d1 / u;
      d1 = d2 / u;
      d2 = smaller;
      x1 = y1 * u;
    }
    Rescale(d1, [this](T up) {
      x1 /= up;
      h11 /= up;
      h12 /= up;
    });
    Rescale(d2, [this](T up) {
      h21 /= up;
      h22 /= up;
    });
  }

  // Keeps a weight between 1/gamma² and gamma²; `shrink(by)` divides the values that scale with the
  // weight's root.
  template <typename Shrink>
  void Rescale(T& weight, Shrink shrink) {
    constexpr T kLarge = kGamma * kGamma;
    while (weight != 0 && std::abs(weight) <= 1 / kLarge) {
      WriteOut();
      weight *= kLarge;
      shrink(kGamma);
    }
    while (std::isfinite(weight) && std::abs(weight) >= kLarge) {
      WriteOut();
      weight /= kLarge;
      shrink(1 / kGamma);
    }
  }

  void Vanish() {
    flag = -1;
    h11 = h12 = h21 = h22 = 0;
    d1 = d2 = x1 = 0;
  }
};

template <typename T>
cublasStatus_t RealRotmg(T* d1, T* d2, T* x1, const T* y1, T* param) {
  if (!d1 || !d2 || !x1 || !y1 || !param) return CUBLAS_STATUS_INVALID_VALUE;
  constexpr T kIdentity = -2;
  ModifiedRotation<T> rotation{.d1 = *d1, .d2 = *d2, .x1 = *x1};
  if (*d1 < 0) {
    rotation.Vanish();
  } else if (*d2 * *y1 == 0) {
    param[0] = kIdentity;
    return CUBLAS_STATUS_SUCCESS;
  } else {
    rotation.Make(*y1);
  }
  *d1 = rotation.d1;
  *d2 = rotation.d2;
  *x1 = rotation.x1;
  param[0] = rotation.flag;
  if (rotation.flag != 0) param[1] = rotation.h11;
  if (rotation.flag != 0) param[4] = rotation.h22;
  if (rotation.flag <= 0) param[2] = rotation.h21;
  if (rotation.flag <= 0) param[3] = rotation.h12;
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

cublasStatus_t Rotg(float* a, float* b, float* c, float* s) { return RealRotg(a, b, c, s); }
cublasStatus_t Rotg(double* a, double* b, double* c, double* s) { return RealRotg(a, b, c, s); }
cublasStatus_t Rotg(cuComplex* a, const cuComplex* b, float* c, cuComplex* s) {
  return ComplexRotg(a, b, c, s);
}
cublasStatus_t Rotg(cuDoubleComplex* a, const cuDoubleComplex* b, double* c, cuDoubleComplex* s) {
  return ComplexRotg(a, b, c, s);
}

cublasStatus_t Rotmg(float* d1, float* d2, float* x1, const float* y1, float* param) {
  return RealRotmg(d1, d2, x1, y1, param);
}
cublasStatus_t Rotmg(double* d1, double* d2, double* x1, const double* y1, double* param) {
  return RealRotmg(d1, d2, x1, y1, param);
}

}  // namespace torpor::shim
