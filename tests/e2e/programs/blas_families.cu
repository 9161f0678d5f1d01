// cuBLAS beyond products of floats: complex and half precision, packed matrices, batches of small
// systems, results of other types.
#include <cublas_v2.h>
#include <cuda_fp16.h>

#include <cmath>
#include <complex>
#include <vector>

#include "tests/e2e/programs/check.h"

#define BLAS(call) REQUIRE((call) == CUBLAS_STATUS_SUCCESS)

using Complex = std::complex<double>;

template <typename T>
class DeviceArray {
 public:
  explicit DeviceArray(const std::vector<T>& values) : count_(values.size()) {
    CUDA(cudaMalloc(&pointer_, count_ * sizeof(T)));
    CUDA(cudaMemcpy(pointer_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice));
  }
  ~DeviceArray() { cudaFree(pointer_); }
  T* get() const { return pointer_; }
  std::vector<T> Read() const {
    std::vector<T> values(count_);
    CUDA(cudaMemcpy(values.data(), pointer_, count_ * sizeof(T), cudaMemcpyDeviceToHost));
    return values;
  }

 private:
  std::size_t count_;
  T* pointer_ = nullptr;
};

static cuDoubleComplex* Z(Complex* pointer) { return reinterpret_cast<cuDoubleComplex*>(pointer); }

static std::vector<Complex> Numbers(int count, int seed) {
  std::vector<Complex> values(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    values[static_cast<std::size_t>(i)] = {std::sin(i * 1.7 + seed), std::cos(i * 0.9 + seed)};
  }
  return values;
}

// C = alpha Aᴴ B + beta C.
static void ComplexProduct(cublasHandle_t blas) {
  constexpr int kN = 20;
  const auto a = Numbers(kN * kN, 1);
  const auto b = Numbers(kN * kN, 2);
  const auto c = Numbers(kN * kN, 3);
  DeviceArray<Complex> device_a(a);
  DeviceArray<Complex> device_b(b);
  DeviceArray<Complex> device_c(c);
  Complex alpha(0.5, 1);
  Complex beta(-1, 0.25);
  BLAS(cublasZgemm(blas, CUBLAS_OP_C, CUBLAS_OP_N, kN, kN, kN, Z(&alpha), Z(device_a.get()), kN,
                   Z(device_b.get()), kN, Z(&beta), Z(device_c.get()), kN));
  const auto got = device_c.Read();
  for (int row = 0; row < kN; ++row) {
    for (int column = 0; column < kN; ++column) {
      Complex sum = 0;
      for (int i = 0; i < kN; ++i) {
        sum += std::conj(a[static_cast<std::size_t>(i + row * kN)]) *
               b[static_cast<std::size_t>(i + column * kN)];
      }
      const auto at = static_cast<std::size_t>(row + column * kN);
      REQUIRE(std::abs(got[at] - (alpha * sum + beta * c[at])) < 1e-12 * kN);
    }
  }
}

// The norm and a product, with results on the device, then on the host.
static void ComplexResults(cublasHandle_t blas) {
  constexpr int kN = 1000;
  const auto x = Numbers(kN, 4);
  DeviceArray<Complex> device_x(x);
  DeviceArray<double> norm({0});
  double squares = 0;
  for (const Complex& value : x) squares += std::norm(value);
  BLAS(cublasSetPointerMode(blas, CUBLAS_POINTER_MODE_DEVICE));
  BLAS(cublasDznrm2(blas, kN, Z(device_x.get()), 1, norm.get()));
  BLAS(cublasSetPointerMode(blas, CUBLAS_POINTER_MODE_HOST));
  REQUIRE(std::abs(norm.Read()[0] - std::sqrt(squares)) < 1e-10);
  Complex dot;
  BLAS(cublasZdotc(blas, kN, Z(device_x.get()), 1, Z(device_x.get()), 1, Z(&dot)));
  REQUIRE(std::abs(dot - squares) < 1e-9);
}

static void HalfPrecision(cublasHandle_t blas) {
  constexpr int kN = 16;
  const std::vector<__half> ones(kN * kN, __float2half(1));
  DeviceArray<__half> a(ones);
  DeviceArray<__half> c(ones);
  const __half alpha = __float2half(0.5F);
  const __half beta = __float2half(2);
  BLAS(cublasHgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, kN, kN, kN, &alpha, a.get(), kN, a.get(), kN,
                   &beta, c.get(), kN));
  for (const __half value : c.Read()) REQUIRE(__half2float(value) == 0.5F * kN + 2);
  __half dot;
  BLAS(cublasDotEx(blas, kN, a.get(), CUDA_R_16F, 1, c.get(), CUDA_R_16F, 1, &dot, CUDA_R_16F,
                   CUDA_R_32F));
  REQUIRE(__half2float(dot) == kN * (0.5F * kN + 2));
  float wide = 0;
  REQUIRE(cublasDotEx(blas, kN, a.get(), CUDA_R_16F, 1, c.get(), CUDA_R_16F, 1, &wide, CUDA_R_32F,
                      CUDA_R_32F) == CUBLAS_STATUS_NOT_SUPPORTED);
}

static void Bytes(cublasHandle_t blas) {
  constexpr int kN = 8;
  constexpr int kK = 32;
  DeviceArray<signed char> a(std::vector<signed char>(kN * kK, 3));
  DeviceArray<signed char> b(std::vector<signed char>(kN * kK, -5));
  DeviceArray<int> c(std::vector<int>(kN * kN, 7));
  const int alpha = 1;
  const int beta = 1;
  BLAS(cublasGemmEx(blas, CUBLAS_OP_T, CUBLAS_OP_N, kN, kN, kK, &alpha, a.get(), CUDA_R_8I, kK,
                    b.get(), CUDA_R_8I, kK, &beta, c.get(), CUDA_R_32I, kN, CUBLAS_COMPUTE_32I,
                    CUBLAS_GEMM_DEFAULT));
  for (const int value : c.Read()) REQUIRE(value == -15 * kK + 7);
}

// A packed triangle: multiplied and solved.
static void PackedTriangle(cublasHandle_t blas) {
  DeviceArray<float> triangle({2, 1, 3, 4, 5, 8});  // lower: {{2}, {1, 4}, {3, 5, 8}}
  DeviceArray<float> x({1, 2, 3});
  BLAS(cublasStpmv(blas, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, CUBLAS_DIAG_NON_UNIT, 3,
                   triangle.get(), x.get(), 1));
  REQUIRE((x.Read() == std::vector<float>{2, 9, 37}));
  BLAS(cublasStpsv(blas, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, CUBLAS_DIAG_NON_UNIT, 3,
                   triangle.get(), x.get(), 1));
  REQUIRE((x.Read() == std::vector<float>{1, 2, 3}));
}

// Factors and solves some systems, whose addresses lie in arrays on the device.
static void Systems(cublasHandle_t blas) {
  constexpr int kN = 12;
  constexpr int kCount = 5;
  std::vector<double> matrices(kN * kN * kCount);
  std::vector<double> sides(kN * kCount);
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    matrices[i] = std::sin(1.3 * static_cast<double>(i));
    if (i % (kN * kN) % (kN + 1) == 0) matrices[i] += 8;  // well conditioned
  }
  for (std::size_t i = 0; i < sides.size(); ++i) sides[i] = std::cos(0.7 * static_cast<double>(i));
  DeviceArray<double> device_matrices(matrices);
  DeviceArray<double> device_sides(sides);
  std::vector<double*> matrix_addresses;
  std::vector<double*> side_addresses;
  for (int i = 0; i < kCount; ++i) {
    matrix_addresses.push_back(device_matrices.get() + i * kN * kN);
    side_addresses.push_back(device_sides.get() + i * kN);
  }
  DeviceArray<double*> matrix_table(matrix_addresses);
  DeviceArray<double*> side_table(side_addresses);
  DeviceArray<int> pivots(std::vector<int>(kN * kCount));
  DeviceArray<int> infos(std::vector<int>(kCount, -1));
  BLAS(cublasDgetrfBatched(blas, kN, matrix_table.get(), kN, pivots.get(), infos.get(), kCount));
  int info = -1;
  BLAS(cublasDgetrsBatched(blas, CUBLAS_OP_N, kN, 1, matrix_table.get(), kN, pivots.get(),
                           side_table.get(), kN, &info, kCount));
  REQUIRE(info == 0);
  REQUIRE(infos.Read() == std::vector<int>(kCount, 0));
  const auto solutions = device_sides.Read();
  for (int i = 0; i < kCount; ++i) {
    for (int row = 0; row < kN; ++row) {
      double sum = 0;
      for (int column = 0; column < kN; ++column) {
        sum += matrices[static_cast<std::size_t>(i * kN * kN + row + column * kN)] *
               solutions[static_cast<std::size_t>(i * kN + column)];
      }
      REQUIRE(std::abs(sum - sides[static_cast<std::size_t>(i * kN + row)]) < 1e-9);
    }
  }
}

// An out-of-place transposition, the second matrix of which is null.
static void Transposition(cublasHandle_t blas) {
  DeviceArray<float> a({1, 2, 3, 4, 5, 6});  // 2 x 3
  DeviceArray<float> c(std::vector<float>(6));
  const float one = 1;
  const float zero = 0;
  BLAS(cublasSgeam(blas, CUBLAS_OP_T, CUBLAS_OP_N, 3, 2, &one, a.get(), 2, &zero, nullptr, 3,
                   c.get(), 3));
  REQUIRE((c.Read() == std::vector<float>{1, 3, 5, 2, 4, 6}));
}

int main() {
  cublasHandle_t blas = nullptr;
  BLAS(cublasCreate(&blas));
  ComplexProduct(blas);
  ComplexResults(blas);
  HalfPrecision(blas);
  Bytes(blas);
  PackedTriangle(blas);
  Systems(blas);
  Transposition(blas);
  BLAS(cublasDestroy(blas));
  return Pass();
}
