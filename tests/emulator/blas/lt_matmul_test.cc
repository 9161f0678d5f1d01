// Products and epilogues of the emulated cuBLASLt against loops in double.
#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <functional>
#include <random>

#include "tests/emulator/blas/blas_fixture.h"

namespace torpor::emulator {
namespace {

template <typename T>
constexpr cudaDataType kType = CUDA_R_32F;
template <>
constexpr cudaDataType kType<double> = CUDA_R_64F;
template <>
constexpr cudaDataType kType<__half> = CUDA_R_16F;
template <>
constexpr cudaDataType kType<__nv_bfloat16> = CUDA_R_16BF;
template <>
constexpr cudaDataType kType<std::int8_t> = CUDA_R_8I;
template <>
constexpr cudaDataType kType<std::int32_t> = CUDA_R_32I;
template <>
constexpr cudaDataType kType<std::complex<float>> = CUDA_C_32F;

using Wide = std::complex<double>;

template <typename T>
Wide Widened(T value) {
  if constexpr (std::is_same_v<T, std::complex<float>>) {
    return value;
  } else {
    return static_cast<double>(value);
  }
}

// A matrix of small numbers, which every type holds exactly.
template <typename T>
std::vector<T> Numbers(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<T> numbers(count);
  for (T& number : numbers) {
    const int value = static_cast<int>(random() % 9) - 4;
    if constexpr (std::is_same_v<T, std::complex<float>>) {
      number = T(static_cast<float>(value), static_cast<float>(random() % 3));
    } else {
      number = static_cast<T>(static_cast<float>(value));
    }
  }
  return numbers;
}

template <typename T>
std::vector<T> Zeros(std::size_t count) {
  return std::vector<T>(count);
}

struct Shape {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  bool by_rows = false;
  std::int64_t padding = 3;

  std::int64_t leading() const { return (by_rows ? columns : rows) + padding; }
  std::int64_t elements() const { return leading() * (by_rows ? rows : columns); }
  std::int64_t At(std::int64_t i, std::int64_t j) const {
    return by_rows ? i * leading() + j : j * leading() + i;
  }
};

class Layout {
 public:
  Layout(cudaDataType type, const Shape& shape, int count) {
    EXPECT_EQ(cublasLtMatrixLayoutInit(&layout_, type, static_cast<std::uint64_t>(shape.rows),
                                       static_cast<std::uint64_t>(shape.columns), shape.leading()),
              CUBLAS_STATUS_SUCCESS);
    const std::int32_t order = shape.by_rows ? CUBLASLT_ORDER_ROW : CUBLASLT_ORDER_COL;
    const std::int64_t stride = shape.elements();
    Set(CUBLASLT_MATRIX_LAYOUT_ORDER, order);
    Set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, count);
    Set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, stride);
  }
  cublasLtMatrixLayout_t get() { return &layout_; }

 private:
  template <typename T>
  void Set(cublasLtMatrixLayoutAttribute_t attribute, T value) {
    EXPECT_EQ(cublasLtMatrixLayoutSetAttribute(&layout_, attribute, &value, sizeof value),
              CUBLAS_STATUS_SUCCESS);
  }
  cublasLtMatrixLayoutOpaque_t layout_{};
};

// What a test varies.
struct Case {
  cublasOperation_t op_a = CUBLAS_OP_N;
  cublasOperation_t op_b = CUBLAS_OP_N;
  bool a_by_rows = false;
  bool b_by_rows = false;
  bool d_by_rows = false;
  int count = 1;
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  cudaDataType scale = CUDA_R_32F;
};

constexpr std::int64_t kM = 9;
constexpr std::int64_t kN = 6;
constexpr std::int64_t kK = 7;

// One product of matrices of In to one of Out, and what it should come to.
template <typename In, typename Out, typename Scalar>
class Product {
 public:
  explicit Product(const Case& with)
      : with_(with),
        a_shape_(ShapeOf(with.op_a, with.a_by_rows, kM, kK)),
        b_shape_(ShapeOf(with.op_b, with.b_by_rows, kK, kN)),
        d_shape_{kM, kN, with.d_by_rows},
        a_(Numbers<In>(Count(a_shape_), 1)),
        b_(Numbers<In>(Count(b_shape_), 2)),
        c_(Numbers<Out>(Count(d_shape_), 3)),
        device_a_(a_),
        device_b_(b_),
        device_c_(c_),
        device_d_(std::vector<Out>(c_.size())) {
    EXPECT_EQ(cublasLtMatmulDescInit(&matmul_, with.compute, with.scale), CUBLAS_STATUS_SUCCESS);
    Set(CUBLASLT_MATMUL_DESC_TRANSA, with.op_a);
    Set(CUBLASLT_MATMUL_DESC_TRANSB, with.op_b);
  }

  template <typename T>
  void Set(cublasLtMatmulDescAttributes_t attribute, T value) {
    EXPECT_EQ(cublasLtMatmulDescSetAttribute(&matmul_, attribute, &value, sizeof value),
              CUBLAS_STATUS_SUCCESS);
  }

  cublasStatus_t Multiply(cublasLtHandle_t handle, CUstream stream, Scalar alpha, Scalar beta) {
    alpha_ = alpha;
    beta_ = beta;
    Layout a(kType<In>, a_shape_, with_.count);
    Layout b(kType<In>, b_shape_, with_.count);
    Layout c(kType<Out>, d_shape_, with_.count);
    const cublasStatus_t status = cublasLtMatmul(
        handle, &matmul_, &alpha, device_a_.get(), a.get(), device_b_.get(), b.get(), &beta,
        device_c_.get(), c.get(), device_d_.get(), c.get(), nullptr, nullptr, 0, stream);
    if (status == CUBLAS_STATUS_SUCCESS) d_ = device_d_.Download(stream);
    return status;
  }

  Wide FactorA(int batch, std::int64_t i, std::int64_t k) const {
    return Factor(a_, a_shape_, with_.op_a, batch, i, k);
  }
  Wide FactorB(int batch, std::int64_t k, std::int64_t j) const {
    return Factor(b_, b_shape_, with_.op_b, batch, k, j);
  }
  Wide Expected(int batch, std::int64_t i, std::int64_t j) const {
    Wide sum;
    for (std::int64_t k = 0; k < kK; ++k) sum += FactorA(batch, i, k) * FactorB(batch, k, j);
    return Widened(alpha_) * sum + Widened(beta_) * Widened(c_[Place(d_shape_, batch, i, j)]);
  }

  using Finish = std::function<Wide(Wide value, std::int64_t row, std::int64_t column)>;
  void Check(double tolerance, const Finish& finish = {}) const {
    for (int batch = 0; batch < with_.count; ++batch) {
      for (std::int64_t j = 0; j < kN; ++j) {
        for (std::int64_t i = 0; i < kM; ++i) {
          Wide expected = Expected(batch, i, j);
          if (finish) expected = finish(expected, i, j);
          const Wide got = Widened(d_[Place(d_shape_, batch, i, j)]);
          ASSERT_LE(std::abs(got - expected), tolerance * (1 + std::abs(expected)))
              << got << " at " << i << ", " << j << " of " << batch;
        }
      }
    }
  }

 private:
  static Shape ShapeOf(cublasOperation_t op, bool by_rows, std::int64_t rows,
                       std::int64_t columns) {
    return op == CUBLAS_OP_N ? Shape{rows, columns, by_rows} : Shape{columns, rows, by_rows};
  }
  std::size_t Count(const Shape& shape) const {
    return static_cast<std::size_t>(shape.elements() * with_.count);
  }
  static std::size_t Place(const Shape& shape, int batch, std::int64_t i, std::int64_t j) {
    return static_cast<std::size_t>(batch * shape.elements() + shape.At(i, j));
  }
  static Wide Factor(const std::vector<In>& x, const Shape& shape, cublasOperation_t op, int batch,
                     std::int64_t i, std::int64_t j) {
    if (op != CUBLAS_OP_N) std::swap(i, j);
    const Wide value = Widened(x[Place(shape, batch, i, j)]);
    return op == CUBLAS_OP_C ? std::conj(value) : value;
  }

  const Case with_;
  const Shape a_shape_;
  const Shape b_shape_;
  const Shape d_shape_;
  const std::vector<In> a_;
  const std::vector<In> b_;
  const std::vector<Out> c_;
  const Array<In> device_a_;
  const Array<In> device_b_;
  const Array<Out> device_c_;
  const Array<Out> device_d_;
  std::vector<Out> d_;
  Scalar alpha_{};
  Scalar beta_{};
  cublasLtMatmulDescOpaque_t matmul_{};
};

class LtMatmulTest : public StreamTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(StreamTest::SetUp());
    ASSERT_BLAS(cublasLtCreate(&handle_));
  }
  void TearDown() override {
    cublasLtDestroy(handle_);
    StreamTest::TearDown();
  }

  // Without an epilogue.
  template <typename In, typename Out, typename Scalar>
  void CheckPlain(const Case& with, double tolerance, Scalar alpha = Scalar(2),
                  Scalar beta = Scalar(1)) {
    Product<In, Out, Scalar> product(with);
    ASSERT_BLAS(product.Multiply(handle_, stream_, alpha, beta));
    product.Check(tolerance);
  }

  cublasLtHandle_t handle_ = nullptr;
};

TEST_F(LtMatmulTest, EveryOperationOrderAndBatch) {
  for (const cublasOperation_t op_a : {CUBLAS_OP_N, CUBLAS_OP_T}) {
    for (const cublasOperation_t op_b : {CUBLAS_OP_N, CUBLAS_OP_T}) {
      for (int orders = 0; orders < 8; ++orders) {
        const Case with{op_a, op_b, (orders & 1) != 0, (orders & 2) != 0, (orders & 4) != 0, 3};
        ASSERT_NO_FATAL_FAILURE((CheckPlain<float, float, float>(with, 1e-6)))
            << op_a << op_b << orders;
      }
    }
  }
}

TEST_F(LtMatmulTest, ComplexNumbersAreConjugatedInAnyOrder) {
  for (int orders = 0; orders < 8; ++orders) {
    const Case with{CUBLAS_OP_C,       CUBLAS_OP_C, (orders & 1) != 0,  (orders & 2) != 0,
                    (orders & 4) != 0, 1,           CUBLAS_COMPUTE_32F, CUDA_C_32F};
    using Complex = std::complex<float>;
    ASSERT_NO_FATAL_FAILURE((CheckPlain<Complex, Complex, Complex>(with, 1e-6, {2, 1}, {0, -1})));
  }
}

TEST_F(LtMatmulTest, EveryDocumentedType) {
  const auto with = [](cublasComputeType_t compute, cudaDataType scale) {
    Case c{CUBLAS_OP_T, CUBLAS_OP_N};
    c.compute = compute;
    c.scale = scale;
    return c;
  };
  const Case single = with(CUBLAS_COMPUTE_32F, CUDA_R_32F);
  const Case tf32 = with(CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F);
  // Sums of small integers are exact in every type that holds them.
  CheckPlain<float, float, float>(tf32, 1e-6);
  CheckPlain<double, double, double>(with(CUBLAS_COMPUTE_64F, CUDA_R_64F), 1e-14);
  CheckPlain<__half, __half, float>(single, 1e-3);
  CheckPlain<__half, float, float>(single, 1e-6);
  CheckPlain<__half, __half, __half>(with(CUBLAS_COMPUTE_16F, CUDA_R_16F), 1e-3, __half(2.0F),
                                     __half(1.0F));
  CheckPlain<__nv_bfloat16, __nv_bfloat16, float>(single, 1e-2);
  CheckPlain<__nv_bfloat16, float, float>(single, 1e-6);
  CheckPlain<std::int8_t, std::int32_t, std::int32_t>(with(CUBLAS_COMPUTE_32I, CUDA_R_32I), 0);
  CheckPlain<std::int8_t, float, float>(single, 1e-6);
  Product<std::int8_t, std::int8_t, float> narrow(with(CUBLAS_COMPUTE_32I, CUDA_R_32F));
  ASSERT_BLAS(narrow.Multiply(handle_, stream_, 2.0F, 1.0F));
  narrow.Check(0, [](Wide value, std::int64_t, std::int64_t) {
    return Wide(std::clamp(value.real(), -128.0, 127.0));
  });
}

TEST_F(LtMatmulTest, UndocumentedTypesAreRefused) {
  Product<double, double, double> product(Case{});  // computed in single precision
  EXPECT_EQ(product.Multiply(handle_, stream_, 1, 0), CUBLAS_STATUS_NOT_SUPPORTED);
}

double Gelu(double x) {
  return x / 2 * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
}

TEST_F(LtMatmulTest, BiasAndActivation) {
  const std::vector<float> bias = Numbers<float>(kM, 7);
  const Array<float> device_bias(bias);
  const struct {
    cublasLtEpilogue_t epilogue;
    bool has_bias;
    double (*activate)(double);
  } cases[] = {
      {CUBLASLT_EPILOGUE_RELU, false, [](double x) { return std::max(x, 0.0); }},
      {CUBLASLT_EPILOGUE_BIAS, true, [](double x) { return x; }},
      {CUBLASLT_EPILOGUE_RELU_BIAS, true, [](double x) { return std::max(x, 0.0); }},
      {CUBLASLT_EPILOGUE_GELU, false, Gelu},
      {CUBLASLT_EPILOGUE_GELU_BIAS, true, Gelu},
  };
  for (const bool by_rows : {false, true}) {
    for (const auto& c : cases) {
      Case with;
      with.d_by_rows = by_rows;
      Product<float, float, float> product(with);
      product.Set(CUBLASLT_MATMUL_DESC_EPILOGUE, c.epilogue);
      if (c.has_bias) product.Set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, device_bias.get());
      ASSERT_BLAS(product.Multiply(handle_, stream_, 0.25F, 0.5F));
      product.Check(1e-6, [&](Wide value, std::int64_t row, std::int64_t) {
        const double sum = value.real() + (c.has_bias ? bias[static_cast<std::size_t>(row)] : 0.0F);
        return Wide(c.activate(sum));
      });
    }
  }
}

TEST_F(LtMatmulTest, ABiasMayHaveATypeAndAStrideOfItsOwn) {
  const std::vector<float> bias = Numbers<float>(2 * kM, 7);
  const Array<float> device_bias(bias);
  Case with;
  with.count = 2;
  Product<__half, __half, float> product(with);
  product.Set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
  product.Set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, device_bias.get());
  product.Set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, std::int32_t{CUDA_R_32F});
  product.Set(CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, std::int64_t{0});
  ASSERT_BLAS(product.Multiply(handle_, stream_, 1, 0));
  product.Check(1e-3, [&](Wide value, std::int64_t row, std::int64_t) {
    return value + Wide(bias[static_cast<std::size_t>(row)]);
  });
}

TEST_F(LtMatmulTest, AMaskOfReluServesItsGradient) {
  constexpr std::int64_t kLeading = 128;
  const Array<std::uint8_t> mask(Zeros<std::uint8_t>(kLeading / 8 * kN));
  Product<float, float, float> forward(Case{});
  forward.Set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_RELU_AUX);
  forward.Set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, mask.get());
  forward.Set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, kLeading);
  ASSERT_BLAS(forward.Multiply(handle_, stream_, 1, 0));
  forward.Check(1e-6, [](Wide value, std::int64_t, std::int64_t) {
    return Wide(std::max(value.real(), 0.0));
  });
  const Array<float> gradient(Zeros<float>(kM));
  Product<float, float, float> backward(Case{});
  backward.Set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_DRELU_BGRAD);
  backward.Set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, mask.get());
  backward.Set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, kLeading);
  backward.Set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, gradient.get());
  ASSERT_BLAS(backward.Multiply(handle_, stream_, 3, 0));
  std::vector<double> sums(kM);
  backward.Check(1e-6, [&](Wide value, std::int64_t row, std::int64_t column) {
    // The same product: where it was positive, three times of it is.
    const bool passes = forward.Expected(0, row, column).real() > 0;
    if (passes) sums[static_cast<std::size_t>(row)] += value.real();
    return passes ? value : Wide();
  });
  const std::vector<float> got = gradient.Download(stream_);
  for (std::size_t i = 0; i < kM; ++i) EXPECT_NEAR(got[i], sums[i], 1e-4);
}

TEST_F(LtMatmulTest, WhatGeluWasGivenServesItsGradient) {
  constexpr std::int64_t kLeading = 16;
  const Array<float> aux(Zeros<float>(kLeading * kN));
  Product<float, float, float> forward(Case{});
  forward.Set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_GELU_AUX);
  forward.Set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aux.get());
  forward.Set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, kLeading);
  ASSERT_BLAS(forward.Multiply(handle_, stream_, 0.125F, 0));
  forward.Check(1e-6, [](Wide value, std::int64_t, std::int64_t) { return Gelu(value.real()); });
  Product<float, float, float> backward(Case{});
  backward.Set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_DGELU);
  backward.Set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aux.get());
  backward.Set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, kLeading);
  ASSERT_BLAS(backward.Multiply(handle_, stream_, 1, 0));
  backward.Check(1e-4, [&](Wide value, std::int64_t row, std::int64_t column) {
    constexpr double kStep = 1e-5;
    const double at = forward.Expected(0, row, column).real();
    return value * ((Gelu(at + kStep) - Gelu(at - kStep)) / (2 * kStep));
  });
}

TEST_F(LtMatmulTest, BiasGradientsOfTheFactors) {
  const Array<float> of_a(Zeros<float>(kM));
  Case with;
  with.op_a = CUBLAS_OP_T;
  Product<float, float, float> product(with);
  product.Set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BGRADA);
  product.Set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, of_a.get());
  ASSERT_BLAS(product.Multiply(handle_, stream_, 1, 0));
  product.Check(1e-6);
  const std::vector<float> sums = of_a.Download(stream_);
  for (std::int64_t i = 0; i < kM; ++i) {
    Wide sum;
    for (std::int64_t k = 0; k < kK; ++k) sum += product.FactorA(0, i, k);
    EXPECT_NEAR(sums[static_cast<std::size_t>(i)], sum.real(), 1e-5);
  }
  const Array<float> of_b(Zeros<float>(kN));
  Product<float, float, float> other(with);
  other.Set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BGRADB);
  other.Set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, of_b.get());
  ASSERT_BLAS(other.Multiply(handle_, stream_, 1, 0));
  const std::vector<float> column_sums = of_b.Download(stream_);
  for (std::int64_t j = 0; j < kN; ++j) {
    Wide sum;
    for (std::int64_t k = 0; k < kK; ++k) sum += other.FactorB(0, k, j);
    EXPECT_NEAR(column_sums[static_cast<std::size_t>(j)], sum.real(), 1e-5);
  }
}

TEST_F(LtMatmulTest, AWrongAddressIsAnError) {
  Product<float, float, float> product(Case{});
  product.Set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
  product.Set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, std::uint64_t{0x1234});
  EXPECT_EQ(product.Multiply(handle_, stream_, 1, 0), CUBLAS_STATUS_EXECUTION_FAILED);
}

TEST_F(LtMatmulTest, TheHeuristicKnowsWhatIsSupported) {
  cublasLtMatmulDescOpaque_t matmul;
  ASSERT_BLAS(cublasLtMatmulDescInit(&matmul, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  const Shape square{4, 4};
  Layout single(CUDA_R_32F, square, 1);
  Layout other(CUDA_R_64F, square, 1);
  cublasLtMatmulHeuristicResult_t results[4];
  int returned = -1;
  ASSERT_BLAS(cublasLtMatmulAlgoGetHeuristic(handle_, &matmul, single.get(), single.get(),
                                             single.get(), single.get(), nullptr, 4, results,
                                             &returned));
  EXPECT_EQ(returned, 1);
  EXPECT_EQ(results[0].state, CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(
      cublasLtMatmulAlgoGetHeuristic(handle_, &matmul, other.get(), single.get(), single.get(),
                                     single.get(), nullptr, 4, results, &returned),
      CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(returned, 0);
}

}  // namespace
}  // namespace torpor::emulator
