#include "emulator/blas/lt/matmul.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>
#include <vector>

#include "emulator/blas/element_type.h"
#include "emulator/blas/lt/matmul_types.h"
#include "emulator/blas/openblas.h"
#include "emulator/blas/operand.h"
#include "emulator/library/stream_work.h"
#include "nvidia/cublaslt/epilogue.h"

namespace torpor::emulator {
namespace {

std::int64_t Rows(const LtMatrixLayout& x) { return static_cast<std::int64_t>(x.rows); }
std::int64_t Columns(const LtMatrixLayout& x) { return static_cast<std::int64_t>(x.columns); }
bool ByRows(const LtMatrixLayout& x) { return x.order == CUBLASLT_ORDER_ROW; }
cudaDataType TypeOf(const LtMatrixLayout& x) { return static_cast<cudaDataType>(x.type); }
cudaDataType ScaleOf(const LtMatmulDescriptor& m) {
  return static_cast<cudaDataType>(m.scale_type);
}

// The bias has D's type by default, or for 8-bit results the scale type.
cudaDataType BiasType(const LtProblem& p) {
  if (p.matmul.bias_type != -1) return static_cast<cudaDataType>(p.matmul.bias_type);
  return p.d_layout.type == CUDA_R_8I ? ScaleOf(p.matmul) : TypeOf(p.d_layout);
}
// The auxiliary matrix has D's type by default.
cudaDataType AuxType(const LtProblem& p) {
  return static_cast<cudaDataType>(p.matmul.aux_type == -1 ? p.d_layout.type : p.matmul.aux_type);
}

const void* Step(const void* array, std::int64_t elements, cudaDataType type) {
  return static_cast<const char*>(array) + elements * static_cast<std::int64_t>(ElementBytes(type));
}

// A matrix of T in the program's numbering of rows and columns, whatever the stored order and type.
template <typename T>
class LtOperand {
 public:
  LtOperand(const void* matrix, const LtMatrixLayout& layout, std::int64_t batch, bool is_read)
      : by_rows_(ByRows(layout)),
        stored_(Step(matrix, batch * layout.batch_stride, TypeOf(layout)), TypeOf(layout),
                by_rows_ ? Columns(layout) : Rows(layout),
                by_rows_ ? Rows(layout) : Columns(layout), layout.leading, is_read) {}

  // Element (row, column) in the program's numbering.
  T& At(std::int64_t row, std::int64_t column) {
    const std::int64_t leading = stored_.leading();
    return stored_.mutable_data()[by_rows_ ? row * leading + column : column * leading + row];
  }
  void WriteBack() { stored_.WriteBack(); }

  const T* data() const { return stored_.data(); }
  int leading() const { return stored_.leading(); }
  // The operation that gives op(matrix) when OpenBLAS applies it to the stored matrix.
  CBLAS_TRANSPOSE Operation(std::int32_t op) const {
    if (!by_rows_) return ToCblas(static_cast<cublasOperation_t>(op));
    if (op == CUBLAS_OP_N) return CblasTrans;
    return op == CUBLAS_OP_T ? CblasNoTrans : CblasConjNoTrans;
  }

 private:
  const bool by_rows_;
  MatrixOperand<T> stored_;
};

// One product's epilogue memory: the bias vector and the auxiliary matrix.
template <typename T>
class EpilogueMemory {
 public:
  EpilogueMemory(const LtProblem& p, std::int64_t batch) : m_(p.matmul), bias_type_(BiasType(p)) {
    bias_ = const_cast<void*>(
        Step(reinterpret_cast<const void*>(m_.bias), batch * m_.bias_batch_stride, bias_type_));
    aux_type_ = AuxType(p);
    first_ = batch * m_.aux_batch_stride;
  }

  T bias(std::int64_t i) const { return To<T>(LoadElement(bias_, i, bias_type_)); }
  void SetBias(std::int64_t i, T value) { StoreElement(bias_, i, bias_type_, value); }

  // Masks are bit matrices, column-major, with the leading dimension in bits.
  bool Bit(std::int64_t row, std::int64_t column) const {
    const std::int64_t bit = first_ + column * m_.aux_leading + row;
    return (Bytes()[bit / 8] >> (bit % 8) & 1) != 0;
  }
  void SetBit(std::int64_t row, std::int64_t column, bool value) {
    const std::int64_t bit = first_ + column * m_.aux_leading + row;
    const auto mask = static_cast<std::uint8_t>(1 << (bit % 8));
    std::uint8_t& byte = Bytes()[bit / 8];
    byte = static_cast<std::uint8_t>(value ? byte | mask : byte & ~mask);
  }
  T aux(std::int64_t row, std::int64_t column) const {
    return To<T>(LoadElement(Bytes(), first_ + column * m_.aux_leading + row, aux_type_));
  }
  void SetAux(std::int64_t row, std::int64_t column, T value) {
    StoreElement(Bytes(), first_ + column * m_.aux_leading + row, aux_type_, value);
  }

 private:
  std::uint8_t* Bytes() const { return reinterpret_cast<std::uint8_t*>(m_.aux); }

  const LtMatmulDescriptor& m_;
  const cudaDataType bias_type_;
  void* bias_ = nullptr;
  cudaDataType aux_type_ = CUDA_R_32F;
  std::int64_t first_ = 0;  // element of this product's auxiliary matrix
};

constexpr double kGeluInner = 0.044715;
const double kGeluOuter = std::sqrt(2 / std::acos(-1.0));

// cuBLASLt's GELU is the approximation by tanh.
template <typename T>
T Gelu(T x) {
  const T inner = static_cast<T>(kGeluOuter) * (x + static_cast<T>(kGeluInner) * x * x * x);
  return x / 2 * (1 + std::tanh(inner));
}
template <typename T>
T GeluGradient(T x) {
  const T outer = static_cast<T>(kGeluOuter);
  const T tanh = std::tanh(outer * (x + static_cast<T>(kGeluInner) * x * x * x));
  const T slope = outer * (1 + 3 * static_cast<T>(kGeluInner) * x * x);
  return (1 + tanh) / 2 + x / 2 * (1 - tanh * tanh) * slope;
}

// Applies the epilogue to one element of the product, except for bias gradients.
template <typename T>
T Finish(const LtMatmulDescriptor& m, EpilogueMemory<T>& memory, std::int64_t row,
         std::int64_t column, T value) {
  if (LtHas(m, kLtBias)) value += memory.bias(row);
  if constexpr (!kIsComplex<T>) {
    const bool keeps = LtHas(m, kLtAuxiliary);
    if (LtHas(m, kLtRelu)) {
      if (keeps) memory.SetBit(row, column, value > 0);
      return std::max(value, T(0));
    }
    if (LtHas(m, kLtGelu)) {
      if (keeps) memory.SetAux(row, column, value);
      return Gelu(value);
    }
    if (LtHas(m, kLtReluGradient)) return memory.Bit(row, column) ? value : T(0);
    if (LtHas(m, kLtGeluGradient)) return value * GeluGradient(memory.aux(row, column));
  }
  return value;
}

// Sums a factor over the dimension that the product contracts.
template <typename T>
void SumFactor(LtOperand<T>& factor, bool rows_are_kept, std::int64_t kept, std::int64_t summed,
               EpilogueMemory<T>& memory) {
  for (std::int64_t i = 0; i < kept; ++i) {
    T sum(0);
    for (std::int64_t j = 0; j < summed; ++j) {
      sum += rows_are_kept ? factor.At(i, j) : factor.At(j, i);
    }
    memory.SetBias(i, sum);
  }
}

// Computes one product of the batch: product, epilogue, then storing D and the epilogue's outputs.
template <typename T>
void RunOne(const LtProblem& p, std::int64_t batch, T alpha, T beta) {
  const LtMatmulDescriptor& m = p.matmul;
  const std::int64_t rows = Rows(p.d_layout);
  const std::int64_t columns = Columns(p.d_layout);
  const bool plain_a = m.transa == CUBLAS_OP_N;
  const bool plain_b = m.transb == CUBLAS_OP_N;
  const std::int64_t depth = plain_a ? Columns(p.a_layout) : Rows(p.a_layout);
  LtOperand<T> a(p.a, p.a_layout, batch, true);
  LtOperand<T> b(p.b, p.b_layout, batch, true);
  std::vector<T> product(static_cast<std::size_t>(rows * columns));
  const T one(1);
  const T zero(0);
  OpenBlas<T>::gemm(CblasColMajor, a.Operation(m.transa), b.Operation(m.transb),
                    static_cast<int>(rows), static_cast<int>(columns), static_cast<int>(depth),
                    Pass(one), a.data(), a.leading(), b.data(), b.leading(), Pass(zero),
                    product.data(), static_cast<int>(rows));

  const bool reads_c = beta != T(0);  // else C may hold NaN, which must not count
  LtOperand<T> c(reads_c ? p.c : p.d, reads_c ? p.c_layout : p.d_layout, batch, reads_c);
  LtOperand<T> d(p.d, p.d_layout, batch, false);
  EpilogueMemory<T> memory(p, batch);
  std::vector<T> row_sums(LtHas(m, kLtBiasGradient) ? static_cast<std::size_t>(rows) : 0);
  for (std::int64_t j = 0; j < columns; ++j) {
    for (std::int64_t i = 0; i < rows; ++i) {
      T value = alpha * product[static_cast<std::size_t>(j * rows + i)];
      if (reads_c) value += beta * c.At(i, j);
      value = Finish(m, memory, i, j, value);
      if (!row_sums.empty()) row_sums[static_cast<std::size_t>(i)] += value;
      d.At(i, j) = value;
    }
  }
  d.WriteBack();
  for (std::size_t i = 0; i < row_sums.size(); ++i) {
    memory.SetBias(static_cast<std::int64_t>(i), row_sums[i]);
  }
  if (LtHas(m, kLtBiasGradientA)) SumFactor(a, plain_a, rows, depth, memory);
  if (LtHas(m, kLtBiasGradientB)) SumFactor(b, !plain_b, columns, depth, memory);
}

template <typename T>
void RunAs(const LtProblem& p, std::complex<double> alpha, std::complex<double> beta) {
  for (std::int64_t batch = 0; batch < p.d_layout.batch_count; ++batch) {
    RunOne<T>(p, batch, To<T>(alpha), To<T>(beta));
  }
}

// Chooses the type of the computation by the type of D.
void Run(const LtProblem& p, std::complex<double> alpha, std::complex<double> beta) {
  switch (p.d_layout.type) {
    case CUDA_C_64F:
      return RunAs<std::complex<double>>(p, alpha, beta);
    case CUDA_C_32F:
      return RunAs<std::complex<float>>(p, alpha, beta);
    case CUDA_R_64F:
      return RunAs<double>(p, alpha, beta);
    default:
      // Sums of products of 8-bit integers are exact in double.
      return p.a_layout.type == CUDA_R_8I ? RunAs<double>(p, alpha, beta)
                                          : RunAs<float>(p, alpha, beta);
  }
}

// Whether the sizes fit the 32-bit integers of OpenBLAS.
bool FitsOpenBlas(const LtMatrixLayout& x) {
  constexpr std::uint64_t kMax = std::numeric_limits<int>::max();
  return x.rows <= kMax && x.columns <= kMax && x.leading <= static_cast<std::int64_t>(kMax);
}

// Whether the leading dimension has room for a line of the matrix.
bool LayoutIsValid(const LtMatrixLayout& x) {
  return x.batch_count >= 1 && x.leading >= 1 &&
         static_cast<std::uint64_t>(x.leading) >= (ByRows(x) ? x.columns : x.rows);
}

// Epilogues are for real numbers, except that a bias may be complex.
bool EpilogueIsSupported(const LtProblem& p) {
  const LtMatmulDescriptor& m = p.matmul;
  const bool real = p.d_layout.type != CUDA_C_32F && p.d_layout.type != CUDA_C_64F;
  if (LtHas(m, kLtAuxiliary) && ByRows(p.d_layout)) return false;
  return real || !LtHas(m, kLtRelu | kLtGelu | kLtReluGradient | kLtGeluGradient);
}

// Checks the auxiliary matrix by the documented rules of alignment.
bool AuxIsValid(const LtProblem& p) {
  const LtMatmulDescriptor& m = p.matmul;
  if (!LtHas(m, kLtAuxiliary)) return true;
  const std::int64_t multiple = LtAuxIsMask(m) ? 128 : 8;
  return m.aux != 0 && m.aux_leading >= Rows(p.d_layout) && m.aux_leading >= 1 &&
         m.aux_leading % multiple == 0 && m.aux_batch_stride >= 0 &&
         m.aux_batch_stride % multiple == 0 && ElementBytes(AuxType(p)) != 0;
}

// Whether the matrices fit each other in size and number.
bool ShapesAgree(const LtProblem& p) {
  const bool plain_a = p.matmul.transa == CUBLAS_OP_N;
  const bool plain_b = p.matmul.transb == CUBLAS_OP_N;
  const LtMatrixLayout& a = p.a_layout;
  const LtMatrixLayout& b = p.b_layout;
  const LtMatrixLayout& d = p.d_layout;
  const std::int32_t count = d.batch_count;
  return d.rows == (plain_a ? a.rows : a.columns) && d.columns == (plain_b ? b.columns : b.rows) &&
         (plain_a ? a.columns : a.rows) == (plain_b ? b.rows : b.columns) &&
         p.c_layout.rows == d.rows && p.c_layout.columns == d.columns && a.batch_count == count &&
         b.batch_count == count && p.c_layout.batch_count == count;
}

// The memory of a matrix, of all batches.
AccessExtent ExtentOf(const void* matrix, const LtMatrixLayout& x, bool written) {
  return MatrixExtent(matrix, ByRows(x) ? Columns(x) : Rows(x), ByRows(x) ? Rows(x) : Columns(x),
                      x.leading, ElementBytes(TypeOf(x)), written, x.batch_stride, x.batch_count);
}

// The memory of the bias, empty without a bias.
AccessExtent BiasExtent(const LtProblem& p) {
  if (!LtHasBias(p.matmul)) return {};
  const bool by_columns = LtHas(p.matmul, kLtBiasGradientB);
  return MatrixExtent(reinterpret_cast<const void*>(p.matmul.bias),
                      by_columns ? Columns(p.d_layout) : Rows(p.d_layout), 1, 1,
                      ElementBytes(BiasType(p)), LtBiasIsWritten(p.matmul),
                      p.matmul.bias_batch_stride, p.d_layout.batch_count);
}

// The memory of the auxiliary matrix, empty without one.
AccessExtent AuxExtent(const LtProblem& p) {
  const LtMatmulDescriptor& m = p.matmul;
  if (!LtHas(m, kLtAuxiliary)) return {};
  const std::int64_t per_byte = LtAuxIsMask(m) ? 8 : 1;
  return MatrixExtent(reinterpret_cast<const void*>(m.aux),
                      (Rows(p.d_layout) + per_byte - 1) / per_byte, Columns(p.d_layout),
                      m.aux_leading / per_byte, LtAuxIsMask(m) ? 1 : ElementBytes(AuxType(p)),
                      LtAuxIsWritten(m), m.aux_batch_stride / per_byte, p.d_layout.batch_count);
}

}  // namespace

cublasStatus_t ValidateLt(const LtProblem& p) {
  const LtMatmulDescriptor& m = p.matmul;
  for (const LtMatrixLayout* layout : {&p.a_layout, &p.b_layout, &p.c_layout, &p.d_layout}) {
    if (layout->order > CUBLASLT_ORDER_ROW || layout->plane_offset != 0 ||
        layout->batch_mode != CUBLASLT_BATCH_MODE_STRIDED || !FitsOpenBlas(*layout)) {
      return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    if (!LayoutIsValid(*layout)) return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (!ShapesAgree(p) || !LtEpilogueIsKnown(m.epilogue) || !AuxIsValid(p) ||
      !AreValid(static_cast<cublasOperation_t>(m.transa),
                static_cast<cublasOperation_t>(m.transb))) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const bool scaled = m.a_scale != 0 || m.b_scale != 0 || m.c_scale != 0 || m.d_scale != 0;
  if (!LtIsRemotable(m) || m.pointer_mode > CUBLASLT_POINTER_MODE_DEVICE || scaled ||
      m.amax_d != 0 || !EpilogueIsSupported(p) ||
      (LtHasBias(m) && ElementBytes(BiasType(p)) == 0)) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  const LtTypes types{static_cast<cublasComputeType_t>(m.compute_type),
                      ScaleOf(m),
                      TypeOf(p.a_layout),
                      TypeOf(p.b_layout),
                      TypeOf(p.c_layout),
                      TypeOf(p.d_layout)};
  return LtTypesAgree(types) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t QueueLt(const DriverCalls& driver, CUstream stream, const LtProblem& p) {
  if (const auto status = ValidateLt(p); status != CUBLAS_STATUS_SUCCESS) return status;
  if (p.alpha == nullptr || p.beta == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  if (LtHasBias(p.matmul) && p.matmul.bias == 0) return CUBLAS_STATUS_INVALID_VALUE;
  if (p.d_layout.rows == 0 || p.d_layout.columns == 0) return CUBLAS_STATUS_SUCCESS;
  const cudaDataType scale = ScaleOf(p.matmul);
  const bool on_device = p.matmul.pointer_mode == CUBLASLT_POINTER_MODE_DEVICE;
  const auto scalar = [&](const void* pointer) {
    return on_device ? std::complex<double>() : LoadElement(pointer, 0, scale);
  };
  const std::complex<double> alpha = scalar(p.alpha);
  const std::complex<double> beta = scalar(p.beta);
  const std::uint64_t scalar_bytes = on_device ? ElementBytes(scale) : 0;
  const bool reads_c = on_device || beta != 0.0;
  const std::array extents = {ExtentOf(p.a, p.a_layout, false),
                              ExtentOf(p.b, p.b_layout, false),
                              reads_c ? ExtentOf(p.c, p.c_layout, false) : AccessExtent(),
                              ExtentOf(p.d, p.d_layout, true),
                              BiasExtent(p),
                              AuxExtent(p),
                              AccessExtent{p.alpha, scalar_bytes, false},
                              AccessExtent{p.beta, scalar_bytes, false}};
  const auto work = [=] {
    if (on_device) return Run(p, LoadElement(p.alpha, 0, scale), LoadElement(p.beta, 0, scale));
    Run(p, alpha, beta);
  };
  return QueueWork(driver, stream, extents, work) ? CUBLAS_STATUS_SUCCESS
                                                  : CUBLAS_STATUS_EXECUTION_FAILED;
}

}  // namespace torpor::emulator
