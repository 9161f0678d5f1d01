#include "emulator/blas/gemm.h"

#include <algorithm>
#include <complex>
#include <optional>
#include <vector>

#include "emulator/blas/api.h"
#include "emulator/blas/arguments.h"
#include "emulator/blas/element_type.h"
#include "emulator/blas/openblas.h"
#include "emulator/blas/operand.h"

namespace torpor::emulator {
namespace {

// The type of alpha and beta.
std::optional<cudaDataType> ScaleType(const GemmProblem& p) {
  const bool is_complex = p.c_type == CUDA_C_32F || p.c_type == CUDA_C_64F;
  switch (p.compute) {
    case CUBLAS_COMPUTE_64F:
    case CUBLAS_COMPUTE_64F_PEDANTIC:
      return is_complex ? CUDA_C_64F : CUDA_R_64F;
    case CUBLAS_COMPUTE_16F:
    case CUBLAS_COMPUTE_16F_PEDANTIC:
      return CUDA_R_16F;
    case CUBLAS_COMPUTE_32F:
    case CUBLAS_COMPUTE_32F_PEDANTIC:
    case CUBLAS_COMPUTE_32F_FAST_16F:
    case CUBLAS_COMPUTE_32F_FAST_16BF:
    case CUBLAS_COMPUTE_32F_FAST_TF32:
      return is_complex ? CUDA_C_32F : CUDA_R_32F;
    case CUBLAS_COMPUTE_32I:
    case CUBLAS_COMPUTE_32I_PEDANTIC:
      return CUDA_R_32I;
    default:
      return std::nullopt;
  }
}

// Whether cuBLAS and the emulator multiply matrices of these types.
bool TypesAgree(const GemmProblem& p, cudaDataType scale) {
  if (p.a_type != p.b_type) return false;
  switch (scale) {
    case CUDA_R_64F:
    case CUDA_C_64F:
    case CUDA_C_32F:
      return p.a_type == scale && p.c_type == scale;
    case CUDA_R_32I:
      return p.a_type == CUDA_R_8I && p.c_type == CUDA_R_32I;
    case CUDA_R_16F:
      return p.a_type == CUDA_R_16F && p.c_type == CUDA_R_16F;
    default:
      // The product has the type of the sums or, for halves, of the factors.
      if (p.a_type == CUDA_R_16F || p.a_type == CUDA_R_16BF) {
        return p.c_type == CUDA_R_32F || p.c_type == p.a_type;
      }
      return (p.a_type == CUDA_R_32F || p.a_type == CUDA_R_8I) && p.c_type == CUDA_R_32F;
  }
}

// A scalar of the problem's scale type, read in host or device mode.
class GemmScalar {
 public:
  GemmScalar(const cublasContext& handle, const void* pointer, cudaDataType type) : type_(type) {
    if (handle.pointer_mode == CUBLAS_POINTER_MODE_DEVICE) {
      device_ = pointer;
    } else {
      value_ = LoadElement(pointer, 0, type);
    }
  }
  std::complex<double> value() const {
    return device_ != nullptr ? LoadElement(device_, 0, type_) : value_;
  }
  AccessExtent extent() const {
    return {device_, device_ != nullptr ? ElementBytes(type_) : 0, false};
  }

 private:
  const cudaDataType type_;
  const void* device_ = nullptr;
  std::complex<double> value_;
};

// One product of the batch, with its own pointers.
struct Product {
  const void* a;
  const void* b;
  void* c;
};

template <typename T>
void RunAs(const GemmProblem& p, const Product& product, std::complex<double> alpha,
           std::complex<double> beta) {
  const bool plain_a = p.op_a == CUBLAS_OP_N;
  const bool plain_b = p.op_b == CUBLAS_OP_N;
  const MatrixOperand<T> a(product.a, p.a_type, plain_a ? p.m : p.k, plain_a ? p.k : p.m, p.lda,
                           true);
  const MatrixOperand<T> b(product.b, p.b_type, plain_b ? p.k : p.n, plain_b ? p.n : p.k, p.ldb,
                           true);
  // With beta zero, NaN in C must not count.
  MatrixOperand<T> c(product.c, p.c_type, p.m, p.n, p.ldc, beta != 0.0);
  const T factor = To<T>(alpha);
  const T addend = To<T>(beta);
  OpenBlas<T>::gemm(CblasColMajor, ToCblas(p.op_a), ToCblas(p.op_b), static_cast<int>(p.m),
                    static_cast<int>(p.n), static_cast<int>(p.k), Pass(factor), a.data(),
                    a.leading(), b.data(), b.leading(), Pass(addend), c.mutable_data(),
                    c.leading());
  c.WriteBack();
}

// Chooses the type of the computation by the type of C.
void Run(const GemmProblem& p, const Product& product, std::complex<double> alpha,
         std::complex<double> beta) {
  if (p.c_type == CUDA_C_64F) return RunAs<std::complex<double>>(p, product, alpha, beta);
  if (p.c_type == CUDA_C_32F) return RunAs<std::complex<float>>(p, product, alpha, beta);
  // Sums of products of 8-bit integers are exact in double.
  if (p.c_type == CUDA_R_64F || p.a_type == CUDA_R_8I) {
    return RunAs<double>(p, product, alpha, beta);
  }
  RunAs<float>(p, product, alpha, beta);
}

// Checks shapes and types, not addresses.
cublasStatus_t Validate(const GemmProblem& p) {
  const auto leading_ok = [](std::int64_t leading, std::int64_t rows) {
    return leading >= std::max<std::int64_t>(1, rows);
  };
  if (!AreValid(p.op_a, p.op_b) || p.m < 0 || p.n < 0 || p.k < 0 || p.count < 0 ||
      p.alpha == nullptr || p.beta == nullptr ||
      !leading_ok(p.lda, p.op_a == CUBLAS_OP_N ? p.m : p.k) ||
      !leading_ok(p.ldb, p.op_b == CUBLAS_OP_N ? p.k : p.n) || !leading_ok(p.ldc, p.m)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (!FitsBlas(p.m, p.n, p.k, p.lda, p.ldb, p.ldc)) return CUBLAS_STATUS_NOT_SUPPORTED;
  const auto scale = ScaleType(p);
  if (!scale || !TypesAgree(p, *scale)) return CUBLAS_STATUS_NOT_SUPPORTED;
  return CUBLAS_STATUS_SUCCESS;
}

// The memory of the matrices of a product, or of all products of a strided batch.
struct Extents {
  AccessExtent a;
  AccessExtent b;
  AccessExtent c;
};

Extents ExtentsOf(const GemmProblem& p, const Product& product, std::int64_t count) {
  const bool plain_a = p.op_a == CUBLAS_OP_N;
  const bool plain_b = p.op_b == CUBLAS_OP_N;
  return {
      MatrixExtent(product.a, plain_a ? p.m : p.k, plain_a ? p.k : p.m, p.lda,
                   ElementBytes(p.a_type), false, p.a_stride, count),
      MatrixExtent(product.b, plain_b ? p.k : p.n, plain_b ? p.n : p.k, p.ldb,
                   ElementBytes(p.b_type), false, p.b_stride, count),
      MatrixExtent(product.c, p.m, p.n, p.ldc, ElementBytes(p.c_type), true, p.c_stride, count)};
}

const void* Step(const void* pointer, std::int64_t elements, cudaDataType type) {
  return static_cast<const char*>(pointer) +
         elements * static_cast<std::int64_t>(ElementBytes(type));
}

}  // namespace

// Batches run one after another in one piece of work; OpenBLAS uses several threads for each.
cublasStatus_t Gemm(const cublasContext& handle, const GemmProblem& p) {
  if (const auto valid = Validate(p); valid != CUBLAS_STATUS_SUCCESS) return valid;
  if (p.m == 0 || p.n == 0 || p.count == 0) return CUBLAS_STATUS_SUCCESS;
  const GemmScalar alpha(handle, p.alpha, *ScaleType(p));
  const GemmScalar beta(handle, p.beta, *ScaleType(p));
  const Extents extents = ExtentsOf(p, {p.a, p.b, p.c}, p.count);
  return Enqueue(handle, {alpha.extent(), beta.extent(), extents.a, extents.b, extents.c},
                 [p, alpha, beta] {
                   for (std::int64_t i = 0; i < p.count; ++i) {
                     const Product product{Step(p.a, i * p.a_stride, p.a_type),
                                           Step(p.b, i * p.b_stride, p.b_type),
                                           const_cast<void*>(Step(p.c, i * p.c_stride, p.c_type))};
                     Run(p, product, alpha.value(), beta.value());
                   }
                 });
}

cublasStatus_t GemmBatched(const cublasContext& handle, const GemmProblem& p, const void* const* a,
                           const void* const* b, void* const* c) {
  if (const auto valid = Validate(p); valid != CUBLAS_STATUS_SUCCESS) return valid;
  if (p.m == 0 || p.n == 0 || p.count == 0) return CUBLAS_STATUS_SUCCESS;
  const GemmScalar alpha(handle, p.alpha, *ScaleType(p));
  const GemmScalar beta(handle, p.beta, *ScaleType(p));
  const std::uint64_t table = static_cast<std::uint64_t>(p.count) * sizeof(void*);
  for (const AccessExtent& extent : {AccessExtent{a, table, false}, AccessExtent{b, table, false},
                                     AccessExtent{c, table, false}}) {
    if (!Accessible(handle, extent)) return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  // A host function may not call the driver, so the matrices are checked before queueing. By then
  // the stream must have written their addresses.
  if (handle.driver->stream_synchronize(handle.stream) != CUDA_SUCCESS) {
    return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  std::vector<Product> products;
  for (std::int64_t i = 0; i < p.count; ++i) {
    const Product product{a[i], b[i], c[i]};
    const Extents extents = ExtentsOf(p, product, 1);
    if (!Accessible(handle, extents.a) || !Accessible(handle, extents.b) ||
        !Accessible(handle, extents.c)) {
      return CUBLAS_STATUS_EXECUTION_FAILED;
    }
    products.push_back(product);
  }
  return Enqueue(handle, {alpha.extent(), beta.extent()}, [p, alpha, beta, products] {
    for (const Product& product : products) Run(p, product, alpha.value(), beta.value());
  });
}

}  // namespace torpor::emulator
