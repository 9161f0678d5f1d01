// Vectors.
#include <array>

#include "emulator/blas/api.h"
#include "emulator/blas/arguments.h"
#include "emulator/blas/openblas.h"
#include "emulator/blas/reduce.h"

using namespace torpor::emulator;  // NOLINT: this file only defines the C interface

namespace {

template <typename T>
cublasStatus_t Axpy(cublasHandle_t handle, int n, const T* alpha, const T* x, int incx, T* y,
                    int incy) {
  return WithHandle(handle, [&](cublasContext& context) {
    if (alpha == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
    if (n <= 0) return CUBLAS_STATUS_SUCCESS;
    const Scalar<T> factor(context, alpha);
    return Enqueue(context, {factor.extent(), ReadVector(x, n, incx), WrittenVector(y, n, incy)},
                   [=] { OpenBlas<T>::axpy(n, Pass(factor.value()), x, incx, y, incy); });
  });
}

// S is T or the real type of T.
template <typename S, typename T>
cublasStatus_t Scal(cublasHandle_t handle, int n, const S* alpha, T* x, int incx) {
  return WithHandle(handle, [&](cublasContext& context) {
    if (alpha == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
    if (n <= 0 || incx <= 0) return CUBLAS_STATUS_SUCCESS;
    const Scalar<S> factor(context, alpha);
    return Enqueue(context, {factor.extent(), WrittenVector(x, n, incx)}, [=] {
      if constexpr (std::is_same_v<S, T>) {
        OpenBlas<T>::scal(n, Pass(factor.value()), x, incx);
      } else {
        OpenBlas<T>::real_scal(n, factor.value(), x, incx);
      }
    });
  });
}

// Overlapping vectors are undefined, as in BLAS.
template <typename T>
cublasStatus_t Copy(cublasHandle_t handle, int n, const T* x, int incx, T* y, int incy) {
  return WithHandle(handle, [&](cublasContext& context) {
    if (n <= 0) return CUBLAS_STATUS_SUCCESS;
    return Enqueue(context, {ReadVector(x, n, incx), WrittenVector(y, n, incy)},
                   [=] { OpenBlas<T>::copy(n, x, incx, y, incy); });
  });
}

template <typename T>
cublasStatus_t Swap(cublasHandle_t handle, int n, T* x, int incx, T* y, int incy) {
  return WithHandle(handle, [&](cublasContext& context) {
    if (n <= 0) return CUBLAS_STATUS_SUCCESS;
    return Enqueue(context, {WrittenVector(x, n, incx), WrittenVector(y, n, incy)},
                   [=] { OpenBlas<T>::swap(n, x, incx, y, incy); });
  });
}

// The dot product of complex vectors.
template <typename T>
T ComplexDot(bool conjugates, int n, const T* x, int incx, const T* y, int incy) {
  T sum{};
  if (n <= 0) return sum;
  if (incx == 1 && incy == 1) {
    (conjugates ? OpenBlas<T>::dotc_sub : OpenBlas<T>::dotu_sub)(n, x, 1, y, 1, &sum);
    return sum;
  }
  // With other increments OpenBLAS (0.3.21) reads beyond the vectors, where nothing may be.
  for (int i = 0; i < n; ++i) {
    const T left = x[Place(i, n, incx)];
    sum += (conjugates ? std::conj(left) : left) * y[Place(i, n, incy)];
  }
  return sum;
}

template <typename T>
cublasStatus_t Dot(cublasHandle_t handle, int n, const T* x, int incx, const T* y, int incy,
                   T* result) {
  return Reduce(handle, {ReadVector(x, n, incx), ReadVector(y, n, incy)}, result, [=] {
    if constexpr (kIsComplex<T>) {
      return ComplexDot(false, n, x, incx, y, incy);
    } else {
      return OpenBlas<T>::dot(n, x, incx, y, incy);
    }
  });
}

template <typename T>
cublasStatus_t Dotc(cublasHandle_t handle, int n, const T* x, int incx, const T* y, int incy,
                    T* result) {
  return Reduce(handle, {ReadVector(x, n, incx), ReadVector(y, n, incy)}, result,
                [=] { return ComplexDot(true, n, x, incx, y, incy); });
}

template <typename T>
cublasStatus_t Nrm2(cublasHandle_t handle, int n, const T* x, int incx, Real<T>* result) {
  return Reduce(handle, {ReadVector(x, n, incx)}, result,
                [=] { return OpenBlas<T>::nrm2(n, x, incx); });
}

template <typename T>
cublasStatus_t Asum(cublasHandle_t handle, int n, const T* x, int incx, Real<T>* result) {
  return Reduce(handle, {ReadVector(x, n, incx)}, result,
                [=] { return OpenBlas<T>::asum(n, x, incx); });
}

// Counts from one, and returns zero for an empty vector, as cuBLAS does.
template <typename T, typename Index>
cublasStatus_t Iamax(cublasHandle_t handle, int n, const T* x, int incx, Index* result) {
  return Reduce(handle, {ReadVector(x, n, incx)}, result, [=] {
    return n <= 0 || incx <= 0 ? 0 : static_cast<Index>(OpenBlas<T>::iamax(n, x, incx)) + 1;
  });
}

template <typename T, typename Index>
cublasStatus_t Iamin(cublasHandle_t handle, int n, const T* x, int incx, Index* result) {
  return Reduce(handle, {ReadVector(x, n, incx)}, result, [=] {
    return n <= 0 || incx <= 0 ? 0 : static_cast<Index>(OpenBlas<T>::iamin(n, x, incx)) + 1;
  });
}

// S is T or the real type of T.
template <typename T, typename S>
cublasStatus_t Rot(cublasHandle_t handle, int n, T* x, int incx, T* y, int incy,
                   const Real<T>* cosine, const S* sine) {
  return WithHandle(handle, [&](cublasContext& context) {
    if (cosine == nullptr || sine == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
    if (n <= 0) return CUBLAS_STATUS_SUCCESS;
    const Scalar<Real<T>> given_c(context, cosine);
    const Scalar<S> given_s(context, sine);
    return Enqueue(
        context,
        {given_c.extent(), given_s.extent(), WrittenVector(x, n, incx), WrittenVector(y, n, incy)},
        [=] {
          const Real<T> c = given_c.value();
          const S s = given_s.value();
          for (int i = 0; i < n; ++i) {
            T& left = x[Place(i, n, incx)];
            T& right = y[Place(i, n, incy)];
            const T rotated = c * left + s * right;
            right = c * right - Conjugate(s) * left;
            left = rotated;
          }
        });
  });
}

// Runs `work` on in-out scalars: at once in host pointer mode, else in stream order.
template <typename Work>
cublasStatus_t OnScalars(cublasHandle_t handle, std::initializer_list<AccessExtent> scalars,
                         Work work) {
  return WithHandle(handle, [&](cublasContext& context) {
    for (const AccessExtent& scalar : scalars) {
      if (scalar.address == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (context.pointer_mode == CUBLAS_POINTER_MODE_DEVICE) return Enqueue(context, scalars, work);
    work();
    return CUBLAS_STATUS_SUCCESS;
  });
}

// Computes a Givens rotation.
template <typename T>
cublasStatus_t Rotg(cublasHandle_t handle, T* a, T* b, Real<T>* c, T* s) {
  return OnScalars(handle,
                   {WrittenVector(a, 1, 1), WrittenVector(b, 1, 1), WrittenVector(c, 1, 1),
                    WrittenVector(s, 1, 1)},
                   [=] { OpenBlas<T>::rotg(a, b, c, s); });
}

constexpr int kRotationParameters = 5;  // of rotm: a flag and a 2x2 matrix

template <typename T>
cublasStatus_t Rotm(cublasHandle_t handle, int n, T* x, int incx, T* y, int incy,
                    const T* parameters) {
  using Rotation = std::array<T, kRotationParameters>;
  return WithHandle(handle, [&](cublasContext& context) {
    if (parameters == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
    if (n <= 0) return CUBLAS_STATUS_SUCCESS;
    const Scalar<Rotation> rotation(context, reinterpret_cast<const Rotation*>(parameters));
    return Enqueue(context,
                   {rotation.extent(), WrittenVector(x, n, incx), WrittenVector(y, n, incy)},
                   [=] { OpenBlas<T>::rotm(n, x, incx, y, incy, rotation.value().data()); });
  });
}

template <typename T>
cublasStatus_t Rotmg(cublasHandle_t handle, T* d1, T* d2, T* x1, const T* y1, T* parameters) {
  return OnScalars(handle,
                   {WrittenVector(d1, 1, 1), WrittenVector(d2, 1, 1), WrittenVector(x1, 1, 1),
                    ReadVector(y1, 1, 1), WrittenVector(parameters, kRotationParameters, 1)},
                   [=] { OpenBlas<T>::rotmg(d1, d2, x1, *y1, parameters); });
}

}  // namespace

extern "C" {

#include "emulator/blas/vector_entries.inc"

}  // extern "C"
