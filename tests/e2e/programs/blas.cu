// cuBLAS against the host: every combination of transposes, batches, vectors, streams.
#include <cublas_v2.h>

#include <cmath>
#include <random>
#include <vector>

#include "tests/e2e/programs/check.h"

#define BLAS(call) REQUIRE((call) == CUBLAS_STATUS_SUCCESS)

static std::mt19937 random_bits(5);

static std::vector<float> RandomVector(int count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) {
    value = static_cast<float>(random_bits() % 2001) / 1000.0F - 1;
  }
  return values;
}

class DeviceVector {
 public:
  explicit DeviceVector(const std::vector<float>& values) : count_(values.size()) {
    CUDA(cudaMalloc(&pointer_, count_ * sizeof(float)));
    CUDA(cudaMemcpy(pointer_, values.data(), count_ * sizeof(float), cudaMemcpyHostToDevice));
  }
  ~DeviceVector() { cudaFree(pointer_); }
  float* get() const { return pointer_; }
  std::vector<float> Read() const {
    std::vector<float> values(count_);
    CUDA(cudaMemcpy(values.data(), pointer_, count_ * sizeof(float), cudaMemcpyDeviceToHost));
    return values;
  }

 private:
  std::size_t count_;
  float* pointer_ = nullptr;
};

// Element (row, column) of op(matrix), column-major with leading dimension `ld`.
static double At(const float* matrix, bool transposed, int ld, int row, int column) {
  return static_cast<double>(transposed ? matrix[row * ld + column] : matrix[column * ld + row]);
}

static void RequireProduct(const float* a, bool ta, int lda, const float* b, bool tb, int ldb,
                           const float* before, const float* after, int ldc, int m, int n, int k,
                           double alpha, double beta) {
  for (int row = 0; row < m; ++row) {
    for (int column = 0; column < n; ++column) {
      double sum = 0;
      for (int i = 0; i < k; ++i) sum += At(a, ta, lda, row, i) * At(b, tb, ldb, i, column);
      const double expected = alpha * sum + beta * At(before, false, ldc, row, column);
      REQUIRE(std::abs(At(after, false, ldc, row, column) - expected) < 1e-4 * k);
    }
  }
}

static void Products(cublasHandle_t blas) {
  constexpr int kM = 33;
  constexpr int kN = 17;
  constexpr int kK = 50;
  constexpr int kLd = 64;
  const float alpha = 1.5F;
  const float beta = -0.5F;
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      const auto a = RandomVector(kLd * kLd);
      const auto b = RandomVector(kLd * kLd);
      const auto c = RandomVector(kLd * kN);
      const DeviceVector device_a(a);
      const DeviceVector device_b(b);
      const DeviceVector device_c(c);
      const DeviceVector device_d(c);
      const cublasOperation_t op_a = ta ? CUBLAS_OP_T : CUBLAS_OP_N;
      const cublasOperation_t op_b = tb ? CUBLAS_OP_T : CUBLAS_OP_N;
      BLAS(cublasSgemm(blas, op_a, op_b, kM, kN, kK, &alpha, device_a.get(), kLd, device_b.get(),
                       kLd, &beta, device_c.get(), kLd));
      BLAS(cublasGemmEx(blas, op_a, op_b, kM, kN, kK, &alpha, device_a.get(), CUDA_R_32F, kLd,
                        device_b.get(), CUDA_R_32F, kLd, &beta, device_d.get(), CUDA_R_32F, kLd,
                        CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
      for (const DeviceVector* result : {&device_c, &device_d}) {
        RequireProduct(a.data(), ta, kLd, b.data(), tb, kLd, c.data(), result->Read().data(), kLd,
                       kM, kN, kK, 1.5, -0.5);
      }
    }
  }
}

static void Batches(cublasHandle_t blas) {
  constexpr int kSide = 24;
  constexpr int kSquare = kSide * kSide;
  constexpr int kBatches = 7;
  const float one = 1;
  const float zero = 0;
  const auto a = RandomVector(kSquare * kBatches);
  const auto b = RandomVector(kSquare * kBatches);
  const DeviceVector device_a(a);
  const DeviceVector device_b(b);
  const DeviceVector device_c(a);
  BLAS(cublasSgemmStridedBatched(blas, CUBLAS_OP_T, CUBLAS_OP_N, kSide, kSide, kSide, &one,
                                 device_a.get(), kSide, kSquare, device_b.get(), kSide, kSquare,
                                 &zero, device_c.get(), kSide, kSquare, kBatches));
  const auto c = device_c.Read();
  for (int i = 0; i < kBatches; ++i) {
    const int at = i * kSquare;
    RequireProduct(a.data() + at, true, kSide, b.data() + at, false, kSide, a.data() + at,
                   c.data() + at, kSide, kSide, kSide, kSide, 1, 0);
  }
}

static void Vectors(cublasHandle_t blas) {
  constexpr int kRows = 40;
  constexpr int kColumns = 30;
  const float alpha = 2;
  const float beta = 0.25F;
  const auto matrix = RandomVector(kRows * kColumns);
  const auto x = RandomVector(2 * kColumns);
  const auto y = RandomVector(kRows);
  const DeviceVector device_matrix(matrix);
  const DeviceVector device_x(x);
  const DeviceVector device_y(y);
  BLAS(cublasSgemv(blas, CUBLAS_OP_N, kRows, kColumns, &alpha, device_matrix.get(), kRows,
                   device_x.get(), 2, &beta, device_y.get(), 1));
  const auto product = device_y.Read();
  for (int row = 0; row < kRows; ++row) {
    double sum = 0;
    for (int i = 0; i < kColumns; ++i) {
      sum += At(matrix.data(), false, kRows, row, i) * static_cast<double>(x[2 * i]);
    }
    REQUIRE(std::abs(static_cast<double>(product[row]) -
                     (2 * sum + 0.25 * static_cast<double>(y[row]))) < 1e-4);
  }
  BLAS(cublasSaxpy(blas, kColumns, &alpha, device_x.get(), 1, device_y.get(), 1));
  BLAS(cublasSscal(blas, kRows, &beta, device_y.get(), 1));
  const auto scaled = device_y.Read();
  for (int i = 0; i < kRows; ++i) {
    const float sum = product[i] + (i < kColumns ? 2 * x[i] : 0.0F);
    REQUIRE(std::abs(scaled[i] - 0.25F * sum) < 1e-4F);
  }
}

int main() {
  cublasHandle_t blas = nullptr;
  BLAS(cublasCreate(&blas));
  int version = 0;
  BLAS(cublasGetVersion(blas, &version));
  REQUIRE(version >= 130'000);
  Products(blas);
  cudaStream_t stream = nullptr;
  CUDA(cudaStreamCreate(&stream));
  BLAS(cublasSetStream(blas, stream));
  BLAS(cublasSetMathMode(blas, CUBLAS_DEFAULT_MATH));
  Batches(blas);
  Vectors(blas);
  // cuBLAS says on stdout what is wrong.
  REQUIRE(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, -1, 1, 1, nullptr, nullptr, 1, nullptr, 1,
                      nullptr, nullptr, 1) == CUBLAS_STATUS_INVALID_VALUE);
  BLAS(cublasDestroy(blas));
  CUDA(cudaStreamDestroy(stream));
  return Pass();
}
