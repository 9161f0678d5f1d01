#include "emulator/blas/gemm.h"

#include <cblas.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "emulator/blas/api.h"
#include "emulator/blas/half.h"

namespace torpor::emulator {
namespace {

CBLAS_TRANSPOSE Transpose(cublasOperation_t op) {
  return op == CUBLAS_OP_N ? CblasNoTrans : CblasTrans;
}

std::size_t ElementBytes(cudaDataType type) {
  switch (type) {
    case CUDA_R_64F:
      return 8;
    case CUDA_R_32F:
      return 4;
    case CUDA_R_16F:
    case CUDA_R_16BF:
      return 2;
    default:
      return 0;
  }
}

// The type of alpha and beta.
std::optional<cudaDataType> ScaleType(cublasComputeType_t compute) {
  switch (compute) {
    case CUBLAS_COMPUTE_64F:
    case CUBLAS_COMPUTE_64F_PEDANTIC:
      return CUDA_R_64F;
    case CUBLAS_COMPUTE_16F:
    case CUBLAS_COMPUTE_16F_PEDANTIC:
      return CUDA_R_16F;
    case CUBLAS_COMPUTE_32F:
    case CUBLAS_COMPUTE_32F_PEDANTIC:
    case CUBLAS_COMPUTE_32F_FAST_16F:
    case CUBLAS_COMPUTE_32F_FAST_16BF:
    case CUBLAS_COMPUTE_32F_FAST_TF32:
      return CUDA_R_32F;
    default:
      return std::nullopt;
  }
}

bool Narrow(cudaDataType type) { return type == CUDA_R_16F || type == CUDA_R_16BF; }

// A column-major matrix of a narrow type as a dense one of floats.
std::vector<float> Widen(const void* source, cudaDataType type, std::int64_t rows,
                         std::int64_t columns, std::int64_t leading) {
  std::vector<float> wide(static_cast<std::size_t>(rows * columns));
  const auto* from = static_cast<const std::uint16_t*>(source);
  for (std::int64_t column = 0; column < columns; ++column) {
    float* to = wide.data() + column * rows;
    const auto count = static_cast<std::size_t>(rows);
    type == CUDA_R_16F ? HalfToFloat(from + column * leading, to, count)
                       : Bfloat16ToFloat(from + column * leading, to, count);
  }
  return wide;
}

void NarrowInto(const std::vector<float>& wide, void* target, cudaDataType type, std::int64_t rows,
                std::int64_t columns, std::int64_t leading) {
  auto* to = static_cast<std::uint16_t*>(target);
  for (std::int64_t column = 0; column < columns; ++column) {
    const float* from = wide.data() + column * rows;
    const auto count = static_cast<std::size_t>(rows);
    type == CUDA_R_16F ? FloatToHalf(from, to + column * leading, count)
                       : FloatToBfloat16(from, to + column * leading, count);
  }
}

// A scalar in the problem's scale type, read in host or device mode.
class GemmScalar {
 public:
  GemmScalar(const cublasContext& handle, const void* pointer, cudaDataType type) : type_(type) {
    if (handle.pointer_mode == CUBLAS_POINTER_MODE_DEVICE) {
      device_ = pointer;
    } else {
      value_ = Read(pointer);
    }
  }
  double value() const { return device_ != nullptr ? Read(device_) : value_; }
  Extent extent() const { return {device_, device_ != nullptr ? ElementBytes(type_) : 0, false}; }

 private:
  double Read(const void* pointer) const {
    if (type_ == CUDA_R_64F) return *static_cast<const double*>(pointer);
    if (type_ == CUDA_R_32F) return *static_cast<const float*>(pointer);
    float value = 0;
    HalfToFloat(static_cast<const std::uint16_t*>(pointer), &value, 1);
    return value;
  }

  const cudaDataType type_;
  const void* device_ = nullptr;
  double value_ = 0;
};

// One matrix product of the batch; the pointers are its own.
struct Product {
  const void* a;
  const void* b;
  void* c;
};

void RunDouble(const GemmProblem& p, const Product& product, double alpha, double beta) {
  cblas_dgemm(CblasColMajor, Transpose(p.op_a), Transpose(p.op_b), static_cast<int>(p.m),
              static_cast<int>(p.n), static_cast<int>(p.k), alpha,
              static_cast<const double*>(product.a), static_cast<int>(p.lda),
              static_cast<const double*>(product.b), static_cast<int>(p.ldb), beta,
              static_cast<double*>(product.c), static_cast<int>(p.ldc));
}

void RunFloat(const GemmProblem& p, const Product& product, float alpha, float beta) {
  const std::int64_t a_rows = p.op_a == CUBLAS_OP_N ? p.m : p.k;
  const std::int64_t a_columns = p.op_a == CUBLAS_OP_N ? p.k : p.m;
  const std::int64_t b_rows = p.op_b == CUBLAS_OP_N ? p.k : p.n;
  const std::int64_t b_columns = p.op_b == CUBLAS_OP_N ? p.n : p.k;
  std::vector<float> wide_a;
  std::vector<float> wide_b;
  std::vector<float> wide_c;
  const auto* a = static_cast<const float*>(product.a);
  const auto* b = static_cast<const float*>(product.b);
  auto* c = static_cast<float*>(product.c);
  std::int64_t lda = p.lda;
  std::int64_t ldb = p.ldb;
  std::int64_t ldc = p.ldc;
  if (Narrow(p.a_type)) {
    wide_a = Widen(product.a, p.a_type, a_rows, a_columns, p.lda);
    a = wide_a.data();
    lda = a_rows;
  }
  if (Narrow(p.b_type)) {
    wide_b = Widen(product.b, p.b_type, b_rows, b_columns, p.ldb);
    b = wide_b.data();
    ldb = b_rows;
  }
  if (Narrow(p.c_type)) {
    // With beta zero C may hold NaN, which must not count.
    if (beta != 0) wide_c = Widen(product.c, p.c_type, p.m, p.n, p.ldc);
    wide_c.resize(static_cast<std::size_t>(p.m * p.n));
    c = wide_c.data();
    ldc = p.m;
  }
  cblas_sgemm(CblasColMajor, Transpose(p.op_a), Transpose(p.op_b), static_cast<int>(p.m),
              static_cast<int>(p.n), static_cast<int>(p.k), alpha, a,
              static_cast<int>(std::max<std::int64_t>(lda, 1)), b,
              static_cast<int>(std::max<std::int64_t>(ldb, 1)), beta, c, static_cast<int>(ldc));
  if (Narrow(p.c_type)) NarrowInto(wide_c, product.c, p.c_type, p.m, p.n, p.ldc);
}

void Run(const GemmProblem& p, const Product& product, double alpha, double beta) {
  if (p.c_type == CUDA_R_64F) {
    RunDouble(p, product, alpha, beta);
  } else {
    RunFloat(p, product, static_cast<float>(alpha), static_cast<float>(beta));
  }
}

cublasStatus_t Validate(const GemmProblem& p) {
  const auto valid_op = [](cublasOperation_t op) {
    return op == CUBLAS_OP_N || op == CUBLAS_OP_T || op == CUBLAS_OP_C;
  };
  const auto leading_ok = [](std::int64_t leading, std::int64_t rows) {
    return leading >= std::max<std::int64_t>(1, rows);
  };
  if (!valid_op(p.op_a) || !valid_op(p.op_b) || p.m < 0 || p.n < 0 || p.k < 0 || p.count < 0 ||
      p.alpha == nullptr || p.beta == nullptr ||
      !leading_ok(p.lda, p.op_a == CUBLAS_OP_N ? p.m : p.k) ||
      !leading_ok(p.ldb, p.op_b == CUBLAS_OP_N ? p.k : p.n) || !leading_ok(p.ldc, p.m)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (!FitsBlas(p.m, p.n, p.k, p.lda, p.ldb, p.ldc)) return CUBLAS_STATUS_NOT_SUPPORTED;
  const auto scale = ScaleType(p.compute);
  const bool same_inputs = p.a_type == p.b_type && ElementBytes(p.a_type) != 0;
  const bool all_double = p.a_type == CUDA_R_64F && p.c_type == CUDA_R_64F;
  const bool no_double = p.a_type != CUDA_R_64F && p.c_type != CUDA_R_64F;
  if (!scale || !same_inputs || ElementBytes(p.c_type) == 0 ||
      !(*scale == CUDA_R_64F ? all_double : no_double)) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  return CUBLAS_STATUS_SUCCESS;
}

struct Extents {
  Extent a;
  Extent b;
  Extent c;
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

cublasStatus_t Gemm(const cublasContext& handle, const GemmProblem& p) {
  if (const auto valid = Validate(p); valid != CUBLAS_STATUS_SUCCESS) return valid;
  if (p.m == 0 || p.n == 0 || p.count == 0) return CUBLAS_STATUS_SUCCESS;
  const GemmScalar alpha(handle, p.alpha, *ScaleType(p.compute));
  const GemmScalar beta(handle, p.beta, *ScaleType(p.compute));
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
  const GemmScalar alpha(handle, p.alpha, *ScaleType(p.compute));
  const GemmScalar beta(handle, p.beta, *ScaleType(p.compute));
  const std::uint64_t table = static_cast<std::uint64_t>(p.count) * sizeof(void*);
  for (const Extent& extent :
       {Extent{a, table, false}, Extent{b, table, false}, Extent{c, table, false}}) {
    if (!Accessible(handle, extent)) return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  // A host function may not call the driver, so the matrices are checked before it is queued:
  // their addresses must have been written by then.
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
