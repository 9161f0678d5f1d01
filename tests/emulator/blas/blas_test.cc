#include <dlfcn.h>
#include <unistd.h>

#include <climits>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "tests/emulator/blas/blas_fixture.h"

namespace torpor::emulator {
namespace {

template <typename T>
std::vector<T> Random(std::size_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<T> distribution(-1, 1);
  std::vector<T> values(count);
  for (T& value : values) value = distribution(engine);
  return values;
}

std::size_t Area(int a, int b) { return static_cast<std::size_t>(a) * static_cast<std::size_t>(b); }

struct Shape {
  cublasOperation_t op_a;
  cublasOperation_t op_b;
  int m;
  int n;
  int k;
  int lda() const { return (op_a == CUBLAS_OP_N ? m : k) + 1; }
  int ldb() const { return (op_b == CUBLAS_OP_N ? k : n) + 2; }
  int ldc() const { return m + 3; }
  std::size_t a_size() const { return Area(lda(), (op_a == CUBLAS_OP_N ? k : m)); }
  std::size_t b_size() const { return Area(ldb(), (op_b == CUBLAS_OP_N ? n : k)); }
  std::size_t c_size() const { return Area(ldc(), n); }
};

// The textbook product, in double.
template <typename T>
std::vector<T> Reference(const Shape& s, double alpha, const T* a, const T* b, double beta,
                         const T* c) {
  std::vector<T> result(c, c + s.c_size());
  for (int column = 0; column < s.n; ++column) {
    for (int row = 0; row < s.m; ++row) {
      double sum = 0;
      for (int i = 0; i < s.k; ++i) {
        const T x = s.op_a == CUBLAS_OP_N ? a[row + i * s.lda()] : a[i + row * s.lda()];
        const T y = s.op_b == CUBLAS_OP_N ? b[i + column * s.ldb()] : b[column + i * s.ldb()];
        sum += static_cast<double>(x) * static_cast<double>(y);
      }
      T& target = result[Area(column, s.ldc()) + static_cast<std::size_t>(row)];
      const double before = beta == 0 ? 0 : beta * static_cast<double>(target);
      target = static_cast<T>(alpha * sum + before);
    }
  }
  return result;
}

template <typename T>
void ExpectNear(const std::vector<T>& got, const std::vector<T>& want, double tolerance) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(static_cast<double>(got[i]), static_cast<double>(want[i]), tolerance) << i;
  }
}

TEST(BlasInitTest, NeedsAContext) {
  cublasHandle_t handle = nullptr;
  EXPECT_EQ(cublasCreate(&handle), CUBLAS_STATUS_NOT_INITIALIZED);
  EXPECT_EQ(cublasSetMathMode(nullptr, CUBLAS_DEFAULT_MATH), CUBLAS_STATUS_NOT_INITIALIZED);
}

TEST_F(BlasTest, Settings) {
  int version = 0;
  ASSERT_BLAS(cublasGetVersion(handle_, &version));
  EXPECT_EQ(version, CUBLAS_VERSION);
  cudaStream_t stream = nullptr;
  ASSERT_BLAS(cublasGetStream(handle_, &stream));
  EXPECT_EQ(stream, stream_);
  ASSERT_BLAS(cublasSetMathMode(handle_, CUBLAS_TF32_TENSOR_OP_MATH));
  cublasMath_t mode{};
  ASSERT_BLAS(cublasGetMathMode(handle_, &mode));
  EXPECT_EQ(mode, CUBLAS_TF32_TENSOR_OP_MATH);
  Array<char> workspace(std::vector<char>(4096));
  EXPECT_EQ(cublasSetWorkspace(handle_, workspace.get(), 4096), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cublasSetWorkspace(handle_, workspace.get(), 1 << 30), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_STREQ(cublasGetStatusName(CUBLAS_STATUS_NOT_SUPPORTED), "CUBLAS_STATUS_NOT_SUPPORTED");
}

TEST_F(BlasTest, Sgemm) {
  for (const cublasOperation_t op_a : {CUBLAS_OP_N, CUBLAS_OP_T}) {
    for (const cublasOperation_t op_b : {CUBLAS_OP_N, CUBLAS_OP_T}) {
      const Shape shape{op_a, op_b, 17, 29, 23};
      const auto a = Random<float>(shape.a_size(), 1);
      const auto b = Random<float>(shape.b_size(), 2);
      const auto c = Random<float>(shape.c_size(), 3);
      Array<float> device_a(a);
      Array<float> device_b(b);
      Array<float> device_c(c);
      const float alpha = 1.5F;
      const float beta = -0.5F;
      ASSERT_BLAS(cublasSgemm(handle_, op_a, op_b, shape.m, shape.n, shape.k, &alpha,
                              device_a.get(), shape.lda(), device_b.get(), shape.ldb(), &beta,
                              device_c.get(), shape.ldc()));
      ExpectNear(device_c.Download(stream_),
                 Reference(shape, alpha, a.data(), b.data(), beta, c.data()), 1e-4);
    }
  }
}

TEST_F(BlasTest, DgemmWithScalarsOnTheDevice) {
  const Shape shape{CUBLAS_OP_N, CUBLAS_OP_T, 8, 9, 10};
  const auto a = Random<double>(shape.a_size(), 1);
  const auto b = Random<double>(shape.b_size(), 2);
  const auto c = Random<double>(shape.c_size(), 3);
  Array<double> device_a(a);
  Array<double> device_b(b);
  Array<double> device_c(c);
  Array<double> scalars({2.0, 3.0});
  ASSERT_BLAS(cublasSetPointerMode(handle_, CUBLAS_POINTER_MODE_DEVICE));
  ASSERT_BLAS(cublasDgemm(handle_, shape.op_a, shape.op_b, shape.m, shape.n, shape.k, scalars.get(),
                          device_a.get(), shape.lda(), device_b.get(), shape.ldb(),
                          scalars.get() + 1, device_c.get(), shape.ldc()));
  ExpectNear(device_c.Download(stream_), Reference(shape, 2, a.data(), b.data(), 3, c.data()),
             1e-12);
}

TEST_F(BlasTest, StridedBatches) {
  const Shape shape{CUBLAS_OP_N, CUBLAS_OP_N, 5, 6, 7};
  constexpr int kCount = 4;
  const auto a = Random<float>(shape.a_size() * kCount, 1);
  const auto b = Random<float>(shape.b_size(), 2);  // stride 0: the same for all
  const auto c = Random<float>(shape.c_size() * kCount, 3);
  Array<float> device_a(a);
  Array<float> device_b(b);
  Array<float> device_c(c);
  const float alpha = 1;
  const float beta = 0;
  ASSERT_BLAS(cublasSgemmStridedBatched(
      handle_, shape.op_a, shape.op_b, shape.m, shape.n, shape.k, &alpha, device_a.get(),
      shape.lda(), static_cast<long long>(shape.a_size()), device_b.get(), shape.ldb(), 0, &beta,
      device_c.get(), shape.ldc(), static_cast<long long>(shape.c_size()), kCount));
  const auto got = device_c.Download(stream_);
  for (std::size_t i = 0; i < kCount; ++i) {
    const auto want = Reference(shape, 1, a.data() + i * shape.a_size(), b.data(), 0,
                                c.data() + i * shape.c_size());
    const auto* begin = got.data() + i * shape.c_size();
    ExpectNear(std::vector<float>(begin, begin + shape.c_size()), want, 1e-5);
  }
}

TEST_F(BlasTest, PointerBatches) {
  const Shape shape{CUBLAS_OP_N, CUBLAS_OP_N, 5, 6, 7};
  const auto a = Random<float>(shape.a_size(), 1);
  const auto b = Random<float>(shape.b_size(), 2);
  const auto c = Random<float>(shape.c_size(), 3);
  Array<float> device_a(a);
  Array<float> device_b(b);
  Array<float> first(c);
  Array<float> second(c);
  Array<const float*> table_a({device_a.get(), device_a.get()});
  Array<const float*> table_b({device_b.get(), device_b.get()});
  Array<float*> table_c({first.get(), second.get()});
  const float alpha = 1;
  const float beta = 1;
  ASSERT_BLAS(cublasSgemmBatched(handle_, shape.op_a, shape.op_b, shape.m, shape.n, shape.k, &alpha,
                                 table_a.get(), shape.lda(), table_b.get(), shape.ldb(), &beta,
                                 table_c.get(), shape.ldc(), 2));
  const auto want = Reference(shape, 1, a.data(), b.data(), 1, c.data());
  ExpectNear(first.Download(stream_), want, 1e-5);
  ExpectNear(second.Download(stream_), want, 1e-5);
}

std::vector<std::uint16_t> ToBfloat16(const std::vector<float>& values) {
  std::vector<std::uint16_t> result;
  for (const float value : values) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof(bits));
    result.push_back(static_cast<std::uint16_t>(bits >> 16));
  }
  return result;
}

std::vector<float> FromBfloat16(const std::vector<std::uint16_t>& values) {
  std::vector<float> result;
  for (const std::uint16_t value : values) {
    const std::uint32_t bits = std::uint32_t{value} << 16;
    float number = 0;
    std::memcpy(&number, &bits, sizeof(number));
    result.push_back(number);
  }
  return result;
}

TEST_F(BlasTest, GemmExInBfloat16) {
  const Shape shape{CUBLAS_OP_T, CUBLAS_OP_N, 16, 8, 32};
  const auto a = ToBfloat16(Random<float>(shape.a_size(), 1));
  const auto b = ToBfloat16(Random<float>(shape.b_size(), 2));
  Array<std::uint16_t> device_a(a);
  Array<std::uint16_t> device_b(b);
  // NaN, which beta 0 must not let through.
  Array<std::uint16_t> narrow_c(std::vector<std::uint16_t>(shape.c_size(), 0x7fff));
  Array<float> wide_c(std::vector<float>(shape.c_size(), 1.0F));
  const float alpha = 1;
  const float beta = 0;
  ASSERT_BLAS(cublasGemmEx(handle_, shape.op_a, shape.op_b, shape.m, shape.n, shape.k, &alpha,
                           device_a.get(), CUDA_R_16BF, shape.lda(), device_b.get(), CUDA_R_16BF,
                           shape.ldb(), &beta, wide_c.get(), CUDA_R_32F, shape.ldc(),
                           CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  ASSERT_BLAS(cublasGemmEx(handle_, shape.op_a, shape.op_b, shape.m, shape.n, shape.k, &alpha,
                           device_a.get(), CUDA_R_16BF, shape.lda(), device_b.get(), CUDA_R_16BF,
                           shape.ldb(), &beta, narrow_c.get(), CUDA_R_16BF, shape.ldc(),
                           CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  const std::vector<float> ones(shape.c_size(), 1.0F);
  const auto want =
      Reference(shape, 1, FromBfloat16(a).data(), FromBfloat16(b).data(), 0, ones.data());
  ExpectNear(wide_c.Download(stream_), want, 1e-4);
  const auto narrow = FromBfloat16(narrow_c.Download(stream_));
  for (int column = 0; column < shape.n; ++column) {
    for (int row = 0; row < shape.m; ++row) {
      const auto at = Area(column, shape.ldc()) + static_cast<std::size_t>(row);
      ASSERT_NEAR(narrow[at], want[at], 0.01 * std::abs(want[at]) + 1e-3);
    }
  }
}

TEST_F(BlasTest, GemmExInHalf) {
  // Numbers that half precision holds exactly: 1.0 is 0x3c00, 2.0 is 0x4000, 4.0 is 0x4400.
  Array<std::uint16_t> a(std::vector<std::uint16_t>(4, 0x3c00));
  Array<std::uint16_t> b(std::vector<std::uint16_t>(4, 0x4000));
  Array<std::uint16_t> c(std::vector<std::uint16_t>(4, 0x3c00));
  const std::uint16_t alpha = 0x3c00;
  const std::uint16_t beta = 0;
  ASSERT_BLAS(cublasGemmEx(handle_, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &alpha, a.get(), CUDA_R_16F,
                           2, b.get(), CUDA_R_16F, 2, &beta, c.get(), CUDA_R_16F, 2,
                           CUBLAS_COMPUTE_16F, CUBLAS_GEMM_DEFAULT));
  EXPECT_EQ(c.Download(stream_), std::vector<std::uint16_t>(4, 0x4400));
}

TEST_F(BlasTest, GemmExOfBytesIsExact) {
  // 127 * 127 * 200 is beyond what a float counts to.
  constexpr int kInner = 200;
  Array<std::int8_t> a(std::vector<std::int8_t>(std::size_t{4} * kInner, 127));
  std::vector<std::int8_t> values(std::size_t{4} * kInner, 127);
  values[0] = -1;
  Array<std::int8_t> b(values);
  Array<std::int32_t> c(std::vector<std::int32_t>(16, 5));
  const std::int32_t alpha = 2;
  const std::int32_t beta = 3;
  ASSERT_BLAS(cublasGemmEx(handle_, CUBLAS_OP_T, CUBLAS_OP_N, 4, 4, kInner, &alpha, a.get(),
                           CUDA_R_8I, kInner, b.get(), CUDA_R_8I, kInner, &beta, c.get(),
                           CUDA_R_32I, 4, CUBLAS_COMPUTE_32I, CUBLAS_GEMM_DEFAULT));
  const auto got = c.Download(stream_);
  EXPECT_EQ(got[0], 2 * (127 * 127 * (kInner - 1) - 127) + 15);
  EXPECT_EQ(got[15], 2 * 127 * 127 * kInner + 15);
}

TEST_F(BlasTest, GemmRefusesWhatItCannotDo) {
  Array<float> x(std::vector<float>(64));
  const float one = 1;
  EXPECT_EQ(cublasSgemm(handle_, CUBLAS_OP_N, CUBLAS_OP_N, 8, 8, 8, &one, x.get(), 4, x.get(), 8,
                        &one, x.get(), 8),
            CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(cublasGemmEx(handle_, CUBLAS_OP_N, CUBLAS_OP_N, 8, 8, 8, &one, x.get(), CUDA_R_8I, 8,
                         x.get(), CUDA_R_8I, 8, &one, x.get(), CUDA_R_16F, 8, CUBLAS_COMPUTE_32I,
                         CUBLAS_GEMM_DEFAULT),
            CUBLAS_STATUS_NOT_SUPPORTED);
}

TEST_F(BlasTest, GemmExTakesThePairsOfTypesThatCublasTakes) {
  Array<float> x(std::vector<float>(64));
  const float one = 1;
  const auto multiply = [&](cudaDataType factors, cudaDataType product) {
    return cublasGemmEx(handle_, CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, 4, &one, x.get(), factors, 4,
                        x.get(), factors, 4, &one, x.get(), product, 4, CUBLAS_COMPUTE_32F,
                        CUBLAS_GEMM_DEFAULT);
  };
  for (const cudaDataType factors : {CUDA_R_32F, CUDA_R_16F, CUDA_R_16BF, CUDA_R_8I}) {
    ASSERT_BLAS(multiply(factors, CUDA_R_32F)) << factors;
    for (const cudaDataType product : {CUDA_R_16F, CUDA_R_16BF, CUDA_R_8I, CUDA_R_64F}) {
      const bool is_same_half = product == factors && product != CUDA_R_8I;
      EXPECT_EQ(multiply(factors, product),
                is_same_half ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED)
          << factors << " to " << product;
    }
  }
}

TEST_F(BlasTest, WrongAddressesAreErrorsNotFaults) {
  Array<float> x(std::vector<float>(64));
  const float one = 1;
  auto* nowhere = reinterpret_cast<float*>(0x2345'0000'0000);
  EXPECT_EQ(cublasSgemm(handle_, CUBLAS_OP_N, CUBLAS_OP_N, 8, 8, 8, &one, nowhere, 8, x.get(), 8,
                        &one, x.get(), 8),
            CUBLAS_STATUS_EXECUTION_FAILED);
  EXPECT_EQ(cublasSgemm(handle_, CUBLAS_OP_N, CUBLAS_OP_N, 8, 9, 8, &one, x.get(), 8, x.get(), 8,
                        &one, x.get(), 8),
            CUBLAS_STATUS_EXECUTION_FAILED);
  float host[8] = {};
  EXPECT_EQ(cublasSscal(handle_, 8, &one, host, 1), CUBLAS_STATUS_EXECUTION_FAILED);
  float result = 0;
  EXPECT_EQ(cublasSnrm2(handle_, 65, x.get(), 1, &result), CUBLAS_STATUS_EXECUTION_FAILED);
}

TEST_F(BlasTest, ExtentsBeyond64BitsAreErrorsNotFaults) {
  Array<float> x(std::vector<float>(64));
  Array<double> y(std::vector<double>(64));
  const float one = 1;
  const auto batched = [&](long long a_stride, long long b_stride, long long c_stride) {
    return cublasSgemmStridedBatched(handle_, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, x.get(), 1,
                                     a_stride, x.get(), 1, b_stride, &one, x.get(), 1, c_stride, 3);
  };
  for (const long long stride : {1LL << 61, -(1LL << 61), 1LL << 62, LLONG_MAX, LLONG_MIN}) {
    EXPECT_EQ(batched(stride, 1, 1), CUBLAS_STATUS_EXECUTION_FAILED) << stride;
    EXPECT_EQ(batched(1, stride, 1), CUBLAS_STATUS_EXECUTION_FAILED) << stride;
    EXPECT_EQ(batched(1, 1, stride), CUBLAS_STATUS_EXECUTION_FAILED) << stride;
  }
  ASSERT_BLAS(batched(1, 1, 1));
  double result = 0;
  // Eight bytes times 2^30 times 2^31 is 2^64.
  EXPECT_EQ(cublasDasum(handle_, (1 << 30) + 1, y.get(), INT_MIN, &result),
            CUBLAS_STATUS_EXECUTION_FAILED);
  EXPECT_EQ(cublasDasum(handle_, INT_MAX, y.get(), INT_MAX, &result),
            CUBLAS_STATUS_EXECUTION_FAILED);
}

TEST_F(BlasTest, Vectors) {
  Array<float> x({1, 2, 3, 4});
  Array<float> y({10, 20, 30, 40});
  const float two = 2;
  ASSERT_BLAS(cublasSaxpy(handle_, 4, &two, x.get(), 1, y.get(), 1));
  EXPECT_EQ(y.Download(stream_), (std::vector<float>{12, 24, 36, 48}));
  ASSERT_BLAS(cublasSscal(handle_, 2, &two, x.get(), 2));
  EXPECT_EQ(x.Download(stream_), (std::vector<float>{2, 2, 6, 4}));
  ASSERT_BLAS(cublasSswap(handle_, 2, x.get(), 1, y.get(), 1));
  EXPECT_EQ(x.Download(stream_), (std::vector<float>{12, 24, 6, 4}));
  ASSERT_BLAS(cublasScopy(handle_, 4, x.get(), 1, y.get(), -1));
  EXPECT_EQ(y.Download(stream_), (std::vector<float>{4, 6, 24, 12}));
  float dot = 0;
  ASSERT_BLAS(cublasSdot(handle_, 4, x.get(), 1, y.get(), 1, &dot));
  EXPECT_EQ(dot, 48 + 144 + 144 + 48);
  int index = 0;
  ASSERT_BLAS(cublasIsamax(handle_, 4, x.get(), 1, &index));
  EXPECT_EQ(index, 2);
}

TEST_F(BlasTest, ResultsOnTheDevice) {
  Array<double> x({3, 4});
  Array<double> result({0});
  ASSERT_BLAS(cublasSetPointerMode(handle_, CUBLAS_POINTER_MODE_DEVICE));
  ASSERT_BLAS(cublasDnrm2(handle_, 2, x.get(), 1, result.get()));
  EXPECT_EQ(result.Download(stream_)[0], 5);
}

TEST_F(BlasTest, Gemv) {
  Array<float> a({1, 2, 3, 4, 5, 6});  // 2 rows, 3 columns
  Array<float> x({1, 1, 1});
  Array<float> y({100, 200});
  const float one = 1;
  ASSERT_BLAS(
      cublasSgemv(handle_, CUBLAS_OP_N, 2, 3, &one, a.get(), 2, x.get(), 1, &one, y.get(), 1));
  EXPECT_EQ(y.Download(stream_), (std::vector<float>{109, 212}));
  ASSERT_BLAS(
      cublasSgemv(handle_, CUBLAS_OP_T, 2, 3, &one, a.get(), 2, y.get(), 1, &one, x.get(), 1));
  EXPECT_EQ(x.Download(stream_), (std::vector<float>{534, 1176, 1818}));
}

TEST_F(BlasTest, StridedTransfers) {
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  Array<float> device(std::vector<float>(3));
  ASSERT_BLAS(cublasSetVector(3, sizeof(float), values.data(), 2, device.get(), 1));
  EXPECT_EQ(device.Download(stream_), (std::vector<float>{1, 3, 5}));
  std::vector<float> back(6);
  ASSERT_BLAS(cublasGetVector(3, sizeof(float), device.get(), 1, back.data(), 2));
  EXPECT_EQ(back, (std::vector<float>{1, 0, 3, 0, 5, 0}));
}

TEST_F(BlasTest, TheRestIsThereAndSaysNo) {
  EXPECT_EQ(cublasCherkEx(handle_, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, 1, 1, nullptr, nullptr,
                          CUDA_C_32F, 1, nullptr, nullptr, CUDA_C_32F, 1),
            CUBLAS_STATUS_NOT_SUPPORTED);
  void* library = dlopen("libcublas.so.13", RTLD_NOLOAD | RTLD_NOW);
  ASSERT_NE(library, nullptr);
  EXPECT_NE(dlvsym(library, "cublasSgemm_v2", "libcublas.so.13"), nullptr);
  EXPECT_EQ(dlsym(library, "cblas_sgemm") != nullptr &&
                dlvsym(library, "cblas_sgemm", "libcublas.so.13") != nullptr,
            false);
}

// On a GPU that computes nothing.
class UncomputedBlasTest : public BlasTest {
 protected:
  void SetUp() override {
    const std::string path = testing::TempDir() + "topology-" + std::to_string(getpid()) + ".yaml";
    std::ofstream(path) << "version: v1\ncomputes: false\ngpus: [{memory: 64MiB}]\n";
    setenv("TORPOR_EMULATOR_TOPOLOGY", path.c_str(), 1);
    ASSERT_NO_FATAL_FAILURE(BlasTest::SetUp());
    std::remove(path.c_str());
  }
};

TEST_F(UncomputedBlasTest, ChecksItsArgumentsAndLeavesMemoryAsItIs) {
  const Array<float> x({1, 2});
  const float two = 2;
  ASSERT_BLAS(cublasSscal(handle_, 2, &two, x.get(), 1));
  EXPECT_EQ(x.Download(stream_), (std::vector<float>{1, 2}));
  auto* const nowhere = reinterpret_cast<float*>(8);
  EXPECT_NE(cublasSscal(handle_, 2, &two, nowhere, 1), CUBLAS_STATUS_SUCCESS);
}

}  // namespace
}  // namespace torpor::emulator
