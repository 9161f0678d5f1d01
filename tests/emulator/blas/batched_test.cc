// Many small problems in one call, in every precision.
#include <memory>

#include "tests/emulator/blas/typed_blas.h"

namespace torpor::emulator {
namespace {

constexpr int kN = 6;
constexpr int kColumns = 3;
constexpr int kLeading = 8;
constexpr int kCount = 3;

template <typename T>
class BatchedTest : public TypedBlasTest<T> {
 protected:
  using Pointer = decltype(P(static_cast<T*>(nullptr)));

  // Matrices of random numbers, and the array of their addresses on the device.
  struct Batch {
    std::vector<std::vector<T>> values;
    std::vector<std::unique_ptr<Array<T>>> arrays;
    std::unique_ptr<Array<T*>> table;

    Pointer* out() const { return reinterpret_cast<Pointer*>(table->get()); }
    auto in() const {
      using Constant = const std::remove_pointer_t<Pointer>*;
      return reinterpret_cast<const Constant*>(table->get());
    }
    Dense Given(std::size_t i, int rows, int columns) const {
      return General(values[i], rows, columns, kLeading);
    }
  };

  Batch MakeBatch(bool is_dominant = false) {
    Batch batch;
    std::vector<T*> addresses;
    for (int i = 0; i < kCount; ++i) {
      auto values = this->Random(kLeading * kLeading);
      if (is_dominant) values = this->Dominant(values, kN, kLeading);
      batch.arrays.push_back(std::make_unique<Array<T>>(values));
      batch.values.push_back(std::move(values));
      addresses.push_back(batch.arrays.back()->get());
    }
    batch.table = std::make_unique<Array<T*>>(addresses);
    return batch;
  }

  Dense Got(const Batch& batch, std::size_t i, int rows, int columns) {
    return General(batch.arrays[i]->Download(this->stream_), rows, columns, kLeading);
  }

  static Dense Identity() {
    return Make(kN, kN, [](int row, int column) { return Wide(row == column ? 1 : 0); });
  }
};
TYPED_TEST_SUITE(BatchedTest, ElementTypes);

TYPED_TEST(BatchedTest, Products) {
  using T = TypeParam;
  const auto alpha = this->Alpha();
  const auto beta = this->Beta();
  const auto a = this->MakeBatch();
  const auto b = this->MakeBatch();
  const auto c = this->MakeBatch();
  const auto y = this->MakeBatch();
  ASSERT_BLAS(ByType<T>(cublasSgemmBatched, cublasDgemmBatched, cublasCgemmBatched,
                        cublasZgemmBatched)(this->handle_, CUBLAS_OP_C, CUBLAS_OP_N, kN, kColumns,
                                            kN, alpha.get(), a.in(), kLeading, b.in(), kLeading,
                                            beta.get(), c.out(), kLeading, kCount));
  ASSERT_BLAS(ByType<T>(cublasSgemvBatched, cublasDgemvBatched, cublasCgemvBatched,
                        cublasZgemvBatched)(this->handle_, CUBLAS_OP_N, kN, kN, alpha.get(), a.in(),
                                            kLeading, b.in(), 1, beta.get(), y.out(), 1, kCount));
  for (std::size_t i = 0; i < kCount; ++i) {
    this->ExpectNear(
        this->Got(c, i, kN, kColumns),
        Wide(alpha) * (Op(a.Given(i, kN, kN), CUBLAS_OP_C) * b.Given(i, kN, kColumns)) +
            Wide(beta) * c.Given(i, kN, kColumns),
        "gemmBatched");
    this->ExpectNear(
        this->Got(y, i, kN, 1),
        Wide(alpha) * (a.Given(i, kN, kN) * b.Given(i, kN, 1)) + Wide(beta) * y.Given(i, kN, 1),
        "gemvBatched");
  }
}

TYPED_TEST(BatchedTest, StridedVectors) {
  using T = TypeParam;
  constexpr int kStride = kLeading * kLeading;
  const auto alpha = this->Alpha();
  const auto beta = this->Beta();
  const auto a = this->Random(kStride * kCount);
  const auto x = this->Random(kN);  // stride 0: the same for all
  const auto y = this->Random(2 * kN * kCount);
  Array<T> device_a(a);
  Array<T> device_x(x);
  Array<T> device_y(y);
  ASSERT_BLAS(ByType<T>(cublasSgemvStridedBatched, cublasDgemvStridedBatched,
                        cublasCgemvStridedBatched, cublasZgemvStridedBatched)(
      this->handle_, CUBLAS_OP_T, kN, kN, alpha.get(), P(device_a.get()), kLeading, kStride,
      P(device_x.get()), 1, 0, beta.get(), P(device_y.get()), 2, 2 * kN, kCount));
  const auto got = device_y.Download(this->stream_);
  const auto part = [](const std::vector<T>& all, int begin, int count) {
    return std::vector<T>(all.begin() + begin, all.begin() + begin + count);
  };
  for (int i = 0; i < kCount; ++i) {
    const Dense matrix = General(part(a, i * kStride, kStride), kN, kN, kLeading);
    this->ExpectNear(Column(part(got, 2 * kN * i, 2 * kN), kN, 2),
                     Wide(alpha) * (Op(matrix, CUBLAS_OP_T) * Column(x, kN, 1)) +
                         Wide(beta) * Column(part(y, 2 * kN * i, 2 * kN), kN, 2),
                     "gemvStridedBatched");
  }
}

TYPED_TEST(BatchedTest, TriangularSystems) {
  using T = TypeParam;
  const auto alpha = this->Alpha();
  const auto a = this->MakeBatch(true);
  const auto b = this->MakeBatch();
  ASSERT_BLAS(ByType<T>(cublasStrsmBatched, cublasDtrsmBatched, cublasCtrsmBatched,
                        cublasZtrsmBatched)(
      this->handle_, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_N, CUBLAS_DIAG_NON_UNIT,
      kN, kColumns, alpha.get(), a.in(), kLeading, b.out(), kLeading, kCount));
  for (std::size_t i = 0; i < kCount; ++i) {
    const Dense triangle =
        Triangle(a.Given(i, kN, kN), CUBLAS_FILL_MODE_UPPER, CUBLAS_DIAG_NON_UNIT);
    this->ExpectNear(triangle * this->Got(b, i, kN, kColumns),
                     Wide(alpha) * b.Given(i, kN, kColumns), "trsmBatched");
  }
}

TYPED_TEST(BatchedTest, FactorsSolveAndInvert) {
  using T = TypeParam;
  for (const bool pivots : {true, false}) {
    const auto a = this->MakeBatch(true);
    const auto b = this->MakeBatch();
    const auto inverse = this->MakeBatch();
    Array<int> rows(std::vector<int>(std::size_t{kN} * kCount));
    Array<int> infos(std::vector<int>(kCount, -1));
    int* const pivot_rows = pivots ? rows.get() : nullptr;
    ASSERT_BLAS(ByType<T>(cublasSgetrfBatched, cublasDgetrfBatched, cublasCgetrfBatched,
                          cublasZgetrfBatched)(this->handle_, kN, a.out(), kLeading, pivot_rows,
                                               infos.get(), kCount));
    EXPECT_EQ(infos.Download(this->stream_), std::vector<int>(kCount, 0));
    int info = -1;
    ASSERT_BLAS(ByType<T>(cublasSgetrsBatched, cublasDgetrsBatched, cublasCgetrsBatched,
                          cublasZgetrsBatched)(this->handle_, CUBLAS_OP_N, kN, kColumns, a.in(),
                                               kLeading, pivot_rows, b.out(), kLeading, &info,
                                               kCount));
    EXPECT_EQ(info, 0);
    ASSERT_BLAS(ByType<T>(cublasSgetriBatched, cublasDgetriBatched, cublasCgetriBatched,
                          cublasZgetriBatched)(this->handle_, kN, a.in(), kLeading, pivot_rows,
                                               inverse.out(), kLeading, infos.get(), kCount));
    for (std::size_t i = 0; i < kCount; ++i) {
      this->ExpectNear(a.Given(i, kN, kN) * this->Got(b, i, kN, kColumns), b.Given(i, kN, kColumns),
                       "getrsBatched");
      this->ExpectNear(a.Given(i, kN, kN) * this->Got(inverse, i, kN, kN), this->Identity(),
                       "getriBatched");
    }
  }
}

TYPED_TEST(BatchedTest, WrongPivotsTouchNothing) {
  using T = TypeParam;
  const auto a = this->MakeBatch(true);
  const auto b = this->MakeBatch();
  const auto inverse = this->MakeBatch();
  std::vector<int> rows(std::size_t{kN} * kCount, 1);
  rows[kN] = 0;                   // of the second problem
  rows[2 * kN + 5] = 0x40000000;  // of the third one
  Array<int> pivots(rows);
  Array<int> infos(std::vector<int>(kCount, 0));
  int info = -1;
  ASSERT_BLAS(ByType<T>(cublasSgetrsBatched, cublasDgetrsBatched, cublasCgetrsBatched,
                        cublasZgetrsBatched)(this->handle_, CUBLAS_OP_N, kN, kColumns, a.in(),
                                             kLeading, pivots.get(), b.out(), kLeading, &info,
                                             kCount));
  ASSERT_BLAS(ByType<T>(cublasSgetriBatched, cublasDgetriBatched, cublasCgetriBatched,
                        cublasZgetriBatched)(this->handle_, kN, a.in(), kLeading, pivots.get(),
                                             inverse.out(), kLeading, infos.get(), kCount));
  EXPECT_EQ(infos.Download(this->stream_), (std::vector<int>{0, -5, -5}));
  for (const std::size_t i : {1, 2}) {
    EXPECT_EQ(b.arrays[i]->Download(this->stream_), b.values[i]);
    EXPECT_EQ(inverse.arrays[i]->Download(this->stream_), inverse.values[i]);
  }
}

// 64 times as many columns, LAPACK's usual workspace, are more than an int holds.
TEST_F(BlasTest, FactorsOfVeryWideMatrices) {
  constexpr int kColumnsOfARow = 1 << 25;
  CUdeviceptr row = 0;
  ASSERT_CUDA(cuMemAlloc(&row, sizeof(float) * kColumnsOfARow));
  ASSERT_CUDA(cuMemsetD32(row, 0x3f800000, kColumnsOfARow));
  Array<float> scalar({5});
  Array<float*> rows({reinterpret_cast<float*>(row)});
  Array<float*> scalars({scalar.get()});
  int info = -1;
  ASSERT_BLAS(
      cublasSgeqrfBatched(handle_, 1, kColumnsOfARow, rows.get(), 1, scalars.get(), &info, 1));
  EXPECT_EQ(info, 0);
  EXPECT_EQ(scalar.Download(stream_)[0], 0.0F);  // there is nothing to reflect
}

TYPED_TEST(BatchedTest, InversesAndSingularMatrices) {
  using T = TypeParam;
  const auto a = this->MakeBatch(true);
  const auto inverse = this->MakeBatch();
  // Its second column is zero.
  const std::vector<T> zeros(kLeading, T(0));
  ASSERT_CUDA(cuMemcpyHtoD(reinterpret_cast<CUdeviceptr>(a.arrays[1]->get() + kLeading),
                           zeros.data(), zeros.size() * sizeof(T)));
  Array<int> infos(std::vector<int>(kCount, -1));
  ASSERT_BLAS(ByType<T>(cublasSmatinvBatched, cublasDmatinvBatched, cublasCmatinvBatched,
                        cublasZmatinvBatched)(this->handle_, kN, a.in(), kLeading, inverse.out(),
                                              kLeading, infos.get(), kCount));
  EXPECT_EQ(infos.Download(this->stream_), (std::vector<int>{0, 2, 0}));
  this->ExpectNear(a.Given(2, kN, kN) * this->Got(inverse, 2, kN, kN), this->Identity(),
                   "matinvBatched");
}

TYPED_TEST(BatchedTest, LeastSquares) {
  using T = TypeParam;
  constexpr int kUnknowns = 4;
  const auto a = this->MakeBatch(true);
  const auto c = this->MakeBatch();
  int info = -1;
  ASSERT_BLAS(ByType<T>(cublasSgelsBatched, cublasDgelsBatched, cublasCgelsBatched,
                        cublasZgelsBatched)(this->handle_, CUBLAS_OP_N, kN, kUnknowns, kColumns,
                                            a.out(), kLeading, c.out(), kLeading, &info, nullptr,
                                            kCount));
  EXPECT_EQ(info, 0);
  for (std::size_t i = 0; i < kCount; ++i) {
    // What is left is orthogonal to all columns.
    const Dense matrix = a.Given(i, kN, kUnknowns);
    const Dense rest =
        matrix * this->Got(c, i, kUnknowns, kColumns) + Wide(-1) * c.Given(i, kN, kColumns);
    this->ExpectNear(Op(matrix, CUBLAS_OP_C) * rest, Dense(kUnknowns, kColumns), "gelsBatched");
  }
}

TYPED_TEST(BatchedTest, OrthogonalFactors) {
  using T = TypeParam;
  const auto a = this->MakeBatch();
  const auto tau = this->MakeBatch();
  int info = -1;
  ASSERT_BLAS(
      ByType<T>(cublasSgeqrfBatched, cublasDgeqrfBatched, cublasCgeqrfBatched, cublasZgeqrfBatched)(
          this->handle_, kN, kColumns, a.out(), kLeading, tau.out(), &info, kCount));
  EXPECT_EQ(info, 0);
  for (std::size_t i = 0; i < kCount; ++i) {
    // Rᴴ R is Aᴴ A.
    const Dense upper =
        Make(kColumns, kColumns, [got = this->Got(a, i, kColumns, kColumns)](int row, int column) {
          return row <= column ? got(row, column) : Wide(0);
        });
    const Dense given = a.Given(i, kN, kColumns);
    this->ExpectNear(Op(upper, CUBLAS_OP_C) * upper, Op(given, CUBLAS_OP_C) * given,
                     "geqrfBatched");
  }
}

TYPED_TEST(BatchedTest, WrongAddressesInATableAreErrors) {
  using T = TypeParam;
  const auto alpha = this->Alpha();
  const auto a = this->MakeBatch();
  const auto c = this->MakeBatch();
  const CUdeviceptr nowhere = 0x2345'0000'0000;
  ASSERT_CUDA(
      cuMemcpyHtoD(reinterpret_cast<CUdeviceptr>(a.table->get() + 1), &nowhere, sizeof nowhere));
  EXPECT_EQ(ByType<T>(cublasStrsmBatched, cublasDtrsmBatched, cublasCtrsmBatched,
                      cublasZtrsmBatched)(this->handle_, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_UPPER,
                                          CUBLAS_OP_N, CUBLAS_DIAG_NON_UNIT, kN, kColumns,
                                          alpha.get(), a.in(), kLeading, c.out(), kLeading, kCount),
            CUBLAS_STATUS_EXECUTION_FAILED);
}

}  // namespace
}  // namespace torpor::emulator
