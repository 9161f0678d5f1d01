// Vectors of mixed types. All is computed in double and rounded once, at the end.
#include <cmath>
#include <complex>

#include "emulator/blas/api.h"
#include "emulator/blas/arguments.h"
#include "emulator/blas/element_type.h"
#include "emulator/blas/reduce.h"

using namespace torpor::emulator;  // NOLINT: this file only defines the C interface

namespace {

using Wide = std::complex<double>;

// Whether the emulator computes with all of these types.
bool AreKnown(std::initializer_list<cudaDataType> types) {
  return std::all_of(types.begin(), types.end(),
                     [](cudaDataType type) { return ElementBytes(type) != 0; });
}

AccessExtent VectorOf(const void* x, int n, int increment, cudaDataType type, bool written) {
  return VectorExtent(x, n, increment, ElementBytes(type), written);
}

// A vector whose elements are widened when read.
struct MixedVector {
  const void* data;
  cudaDataType type;
  int n;
  int increment;

  Wide Get(int i) const { return LoadElement(data, Place(i, n, increment), type); }
  void Set(int i, Wide value) const {
    StoreElement(const_cast<void*>(data), Place(i, n, increment), type, value);
  }
};

// A scalar of any type, read now or in stream order.
class MixedScalar {
 public:
  MixedScalar(const cublasContext& context, const void* pointer, cudaDataType type)
      : device_(context.pointer_mode == CUBLAS_POINTER_MODE_DEVICE ? pointer : nullptr),
        type_(type),
        value_(device_ == nullptr ? LoadElement(pointer, 0, type) : Wide()) {}

  Wide value() const { return device_ != nullptr ? LoadElement(device_, 0, type_) : value_; }
  AccessExtent extent() const {
    return {device_, device_ != nullptr ? ElementBytes(type_) : 0, false};
  }

 private:
  const void* device_;
  cudaDataType type_;
  Wide value_;
};

cublasStatus_t AxpyEx(cublasHandle_t handle, int n, const void* alpha, cudaDataType alpha_type,
                      const void* x, cudaDataType x_type, int incx, void* y, cudaDataType y_type,
                      int incy, cudaDataType) {
  return WithHandle(handle, [&](cublasContext& context) {
    if (alpha == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
    if (!AreKnown({alpha_type, x_type, y_type})) return CUBLAS_STATUS_NOT_SUPPORTED;
    if (n <= 0) return CUBLAS_STATUS_SUCCESS;
    const MixedScalar factor(context, alpha, alpha_type);
    const MixedVector from{x, x_type, n, incx};
    const MixedVector to{y, y_type, n, incy};
    return Enqueue(
        context,
        {factor.extent(), VectorOf(x, n, incx, x_type, false), VectorOf(y, n, incy, y_type, true)},
        [=] {
          const Wide by = factor.value();
          for (int i = 0; i < n; ++i) to.Set(i, by * from.Get(i) + to.Get(i));
        });
  });
}

cublasStatus_t ScalEx(cublasHandle_t handle, int n, const void* alpha, cudaDataType alpha_type,
                      void* x, cudaDataType x_type, int incx, cudaDataType) {
  return WithHandle(handle, [&](cublasContext& context) {
    if (alpha == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
    if (!AreKnown({alpha_type, x_type})) return CUBLAS_STATUS_NOT_SUPPORTED;
    if (n <= 0 || incx <= 0) return CUBLAS_STATUS_SUCCESS;
    const MixedScalar factor(context, alpha, alpha_type);
    const MixedVector vector{x, x_type, n, incx};
    return Enqueue(context, {factor.extent(), VectorOf(x, n, incx, x_type, true)}, [=] {
      const Wide by = factor.value();
      for (int i = 0; i < n; ++i) vector.Set(i, by * vector.Get(i));
    });
  });
}

// As Reduce, for a result of any type.
template <typename Compute>
cublasStatus_t ReduceMixed(cublasHandle_t handle, std::initializer_list<AccessExtent> inputs,
                           void* result, cudaDataType result_type, Compute compute) {
  switch (result_type) {
    case CUDA_C_64F:
      return Reduce(handle, inputs, static_cast<Wide*>(result), compute);
    case CUDA_C_32F:
      return Reduce(handle, inputs, static_cast<std::complex<float>*>(result),
                    [=] { return std::complex<float>(compute()); });
    case CUDA_R_64F:
      return Reduce(handle, inputs, static_cast<double*>(result), [=] { return compute().real(); });
    case CUDA_R_32F:
      return Reduce(handle, inputs, static_cast<float*>(result),
                    [=] { return static_cast<float>(compute().real()); });
    case CUDA_R_16F:
    case CUDA_R_16BF:
      return Reduce(handle, inputs, static_cast<std::uint16_t*>(result), [=] {
        std::uint16_t bits = 0;
        StoreElement(&bits, 0, result_type, compute());
        return bits;
      });
    default:
      return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

// Whether cuBLAS has a dot product of these types: both vectors and the result of one, which is
// also what the sum is of, or f32 for halves.
bool HaveDot(cudaDataType x, cudaDataType y, cudaDataType result, cudaDataType sum) {
  const bool is_half = x == CUDA_R_16F || x == CUDA_R_16BF;
  return y == x && result == x && sum == (is_half ? CUDA_R_32F : x);
}

// The dot product of two vectors, summed in double precision.
cublasStatus_t AnyDotEx(cublasHandle_t handle, int n, const MixedVector& x, const MixedVector& y,
                        bool conjugates, void* result, cudaDataType result_type,
                        cudaDataType sum_type) {
  if (!AreKnown({x.type, y.type}) || !HaveDot(x.type, y.type, result_type, sum_type))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  return ReduceMixed(handle,
                     {VectorOf(x.data, n, x.increment, x.type, false),
                      VectorOf(y.data, n, y.increment, y.type, false)},
                     result, result_type, [=] {
                       Wide sum;
                       for (int i = 0; i < n; ++i) {
                         const Wide left = x.Get(i);
                         sum += (conjugates ? std::conj(left) : left) * y.Get(i);
                       }
                       return sum;
                     });
}

cublasStatus_t DotEx(cublasHandle_t handle, int n, const void* x, cudaDataType x_type, int incx,
                     const void* y, cudaDataType y_type, int incy, void* result,
                     cudaDataType result_type, cudaDataType sum_type) {
  return AnyDotEx(handle, n, {x, x_type, n, incx}, {y, y_type, n, incy}, false, result, result_type,
                  sum_type);
}

cublasStatus_t DotcEx(cublasHandle_t handle, int n, const void* x, cudaDataType x_type, int incx,
                      const void* y, cudaDataType y_type, int incy, void* result,
                      cudaDataType result_type, cudaDataType sum_type) {
  return AnyDotEx(handle, n, {x, x_type, n, incx}, {y, y_type, n, incy}, true, result, result_type,
                  sum_type);
}

cublasStatus_t Nrm2Ex(cublasHandle_t handle, int n, const void* x, cudaDataType x_type, int incx,
                      void* result, cudaDataType result_type, cudaDataType) {
  if (!AreKnown({x_type})) return CUBLAS_STATUS_NOT_SUPPORTED;
  const MixedVector vector{x, x_type, n, incx};
  return ReduceMixed(handle, {VectorOf(x, n, incx, x_type, false)}, result, result_type, [=] {
    double norm = 0;  // hypot neither overflows nor underflows on its way
    for (int i = 0; i < n; ++i) norm = std::hypot(norm, std::abs(vector.Get(i)));
    return Wide(norm);
  });
}

cublasStatus_t RotEx(cublasHandle_t handle, int n, void* x, cudaDataType x_type, int incx, void* y,
                     cudaDataType y_type, int incy, const void* cosine, const void* sine,
                     cudaDataType scalar_type, cudaDataType) {
  return WithHandle(handle, [&](cublasContext& context) {
    if (cosine == nullptr || sine == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
    if (!AreKnown({x_type, y_type, scalar_type})) return CUBLAS_STATUS_NOT_SUPPORTED;
    if (n <= 0) return CUBLAS_STATUS_SUCCESS;
    const MixedScalar given_c(context, cosine, scalar_type);
    const MixedScalar given_s(context, sine, scalar_type);
    const MixedVector left{x, x_type, n, incx};
    const MixedVector right{y, y_type, n, incy};
    return Enqueue(context,
                   {given_c.extent(), given_s.extent(), VectorOf(x, n, incx, x_type, true),
                    VectorOf(y, n, incy, y_type, true)},
                   [=] {
                     const double c = given_c.value().real();
                     const Wide s = given_s.value();
                     for (int i = 0; i < n; ++i) {
                       const Wide old = left.Get(i);
                       left.Set(i, c * old + s * right.Get(i));
                       right.Set(i, c * right.Get(i) - std::conj(s) * old);
                     }
                   });
  });
}

}  // namespace

extern "C" {

#include "emulator/blas/extended_entries.inc"

}  // extern "C"
