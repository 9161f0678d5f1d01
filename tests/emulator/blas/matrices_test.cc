// Level 3, in every precision.
#include "tests/emulator/blas/typed_blas.h"

namespace torpor::emulator {
namespace {

constexpr int kM = 9;
constexpr int kN = 7;
constexpr int kK = 5;
constexpr int kLeading = 12;

template <typename T>
class MatricesTest : public TypedBlasTest<T> {
 protected:
  std::vector<T> RandomMatrix() { return this->Random(kLeading * kLeading); }
  Dense Got(const Array<T>& array, int rows, int columns) {
    return General(array.Download(this->stream_), rows, columns, kLeading);
  }
};
TYPED_TEST_SUITE(MatricesTest, ElementTypes);

TYPED_TEST(MatricesTest, Gemm) {
  using T = TypeParam;
  const auto alpha = this->Alpha();
  const auto beta = this->Beta();
  for (const cublasOperation_t op_a : kOps) {
    for (const cublasOperation_t op_b : kOps) {
      const auto a = this->RandomMatrix();
      const auto b = this->RandomMatrix();
      const auto c = this->RandomMatrix();
      Array<T> device_a(a);
      Array<T> device_b(b);
      Array<T> device_c(c);
      ASSERT_BLAS(ByType<T>(cublasSgemm, cublasDgemm, cublasCgemm, cublasZgemm)(
          this->handle_, op_a, op_b, kM, kN, kK, alpha.get(), P(device_a.get()), kLeading,
          P(device_b.get()), kLeading, beta.get(), P(device_c.get()), kLeading));
      const bool plain_a = op_a == CUBLAS_OP_N;
      const bool plain_b = op_b == CUBLAS_OP_N;
      const Dense left = General(a, plain_a ? kM : kK, plain_a ? kK : kM, kLeading);
      const Dense right = General(b, plain_b ? kK : kN, plain_b ? kN : kK, kLeading);
      this->ExpectNear(this->Got(device_c, kM, kN),
                       Wide(alpha) * (Op(left, op_a) * Op(right, op_b)) +
                           Wide(beta) * General(c, kM, kN, kLeading),
                       "gemm");
    }
  }
}

TYPED_TEST(MatricesTest, SymmetricAndHermitianProducts) {
  using T = TypeParam;
  const auto alpha = this->Alpha();
  const auto beta = this->Beta();
  for (const cublasSideMode_t side : kSides) {
    for (const cublasFillMode_t fill : kFills) {
      const int order = side == CUBLAS_SIDE_LEFT ? kM : kN;
      const auto a = this->RandomMatrix();
      const auto b = this->RandomMatrix();
      const auto c = this->RandomMatrix();
      Array<T> device_a(a);
      Array<T> device_b(b);
      const Dense full = General(a, order, order, kLeading);
      const Dense other = General(b, kM, kN, kLeading);
      const auto expect = [&](const Dense& matrix, const char* what, auto function) {
        Array<T> device_c(c);
        ASSERT_BLAS(function(this->handle_, side, fill, kM, kN, alpha.get(), P(device_a.get()),
                             kLeading, P(device_b.get()), kLeading, beta.get(), P(device_c.get()),
                             kLeading));
        const Dense product = side == CUBLAS_SIDE_LEFT ? matrix * other : other * matrix;
        this->ExpectNear(this->Got(device_c, kM, kN),
                         Wide(alpha) * product + Wide(beta) * General(c, kM, kN, kLeading), what);
      };
      expect(Symmetric(full, fill), "symm",
             ByType<T>(cublasSsymm, cublasDsymm, cublasCsymm, cublasZsymm));
      if constexpr (kIsComplex<T>) {
        expect(Hermitian(full, fill), "hemm", ByType<T>(0, 0, cublasChemm, cublasZhemm));
      }
    }
  }
}

// C = alpha A Aᵀ + beta C and its kin, on half of C.
TYPED_TEST(MatricesTest, RankKUpdates) {
  using T = TypeParam;
  const auto alpha = this->Alpha();
  const auto beta = this->Beta();
  const auto real_alpha = static_cast<Real<T>>(1.5);
  const auto real_beta = static_cast<Real<T>>(-0.5);
  for (const cublasFillMode_t fill : kFills) {
    for (const bool transposes : {false, true}) {
      const auto a = this->RandomMatrix();
      const auto b = this->RandomMatrix();
      const auto c = this->RandomMatrix();
      Array<T> device_a(a);
      Array<T> device_b(b);
      const int rows = transposes ? kK : kN;
      const Dense first = General(a, rows, kN + kK - rows, kLeading);
      const Dense second = General(b, rows, kN + kK - rows, kLeading);
      const auto expect = [&](bool is_hermitian, Wide added_beta, const Dense& added,
                              const char* what, auto call) {
        Array<T> device_c(c);
        ASSERT_BLAS(call(P(device_c.get())));
        Dense before = General(c, kN, kN, kLeading);
        for (int i = 0; i < kN && is_hermitian; ++i) before(i, i) = before(i, i).real();
        this->ExpectNear(this->Got(device_c, kN, kN), added + added_beta * before, what, true,
                         fill);
      };
      // left * mirror(right), in the order that transposing gives.
      const auto product = [&](const Dense& left, const Dense& right, cublasOperation_t mirror) {
        return transposes ? Op(left, mirror) * right : left * Op(right, mirror);
      };
      const cublasOperation_t op = transposes ? CUBLAS_OP_T : CUBLAS_OP_N;
      expect(false, Wide(beta), Wide(alpha) * product(first, first, CUBLAS_OP_T), "syrk",
             [&](auto device_c) {
               return ByType<T>(cublasSsyrk, cublasDsyrk, cublasCsyrk, cublasZsyrk)(
                   this->handle_, fill, op, kN, kK, alpha.get(), P(device_a.get()), kLeading,
                   beta.get(), device_c, kLeading);
             });
      const Dense symmetric = Wide(alpha) * product(first, second, CUBLAS_OP_T);
      expect(false, Wide(beta), symmetric + Wide(alpha) * product(second, first, CUBLAS_OP_T),
             "syr2k", [&](auto device_c) {
               return ByType<T>(cublasSsyr2k, cublasDsyr2k, cublasCsyr2k, cublasZsyr2k)(
                   this->handle_, fill, op, kN, kK, alpha.get(), P(device_a.get()), kLeading,
                   P(device_b.get()), kLeading, beta.get(), device_c, kLeading);
             });
      expect(false, Wide(beta), symmetric, "syrkx", [&](auto device_c) {
        return ByType<T>(cublasSsyrkx, cublasDsyrkx, cublasCsyrkx, cublasZsyrkx)(
            this->handle_, fill, op, kN, kK, alpha.get(), P(device_a.get()), kLeading,
            P(device_b.get()), kLeading, beta.get(), device_c, kLeading);
      });
      if constexpr (kIsComplex<T>) {
        const cublasOperation_t mirror = transposes ? CUBLAS_OP_C : CUBLAS_OP_N;
        const Wide added_beta = static_cast<double>(real_beta);
        expect(true, added_beta, Wide(1.5) * product(first, first, CUBLAS_OP_C), "herk",
               [&](auto device_c) {
                 return ByType<T>(0, 0, cublasCherk, cublasZherk)(
                     this->handle_, fill, mirror, kN, kK, &real_alpha, P(device_a.get()), kLeading,
                     &real_beta, device_c, kLeading);
               });
        const Dense once = Wide(alpha) * product(first, second, CUBLAS_OP_C);
        expect(true, added_beta,
               once + std::conj(Wide(alpha)) * product(second, first, CUBLAS_OP_C), "her2k",
               [&](auto device_c) {
                 return ByType<T>(0, 0, cublasCher2k, cublasZher2k)(
                     this->handle_, fill, mirror, kN, kK, alpha.get(), P(device_a.get()), kLeading,
                     P(device_b.get()), kLeading, &real_beta, device_c, kLeading);
               });
        // herkx is for products that are Hermitian, as those of a matrix with itself are.
        const auto ones = static_cast<T>(1);
        expect(true, added_beta, product(first, first, CUBLAS_OP_C), "herkx", [&](auto device_c) {
          return ByType<T>(0, 0, cublasCherkx, cublasZherkx)(
              this->handle_, fill, mirror, kN, kK, P(&ones), P(device_a.get()), kLeading,
              P(device_a.get()), kLeading, &real_beta, device_c, kLeading);
        });
      }
    }
  }
}

TYPED_TEST(MatricesTest, Triangles) {
  using T = TypeParam;
  const auto alpha = this->Alpha();
  for (const cublasSideMode_t side : kSides) {
    for (const cublasFillMode_t fill : kFills) {
      for (const cublasOperation_t op : kOps) {
        for (const cublasDiagType_t diagonal : kDiagonals) {
          const int order = side == CUBLAS_SIDE_LEFT ? kM : kN;
          const auto a = this->Dominant(this->RandomMatrix(), order, kLeading);
          const auto b = this->RandomMatrix();
          Array<T> device_a(a);
          Array<T> device_b(b);
          Array<T> device_c(b);
          const Dense triangle =
              Op(Triangle(General(a, order, order, kLeading), fill, diagonal), op);
          const Dense right = General(b, kM, kN, kLeading);
          const Dense product = side == CUBLAS_SIDE_LEFT ? triangle * right : right * triangle;
          ASSERT_BLAS(ByType<T>(cublasStrmm, cublasDtrmm, cublasCtrmm, cublasZtrmm)(
              this->handle_, side, fill, op, diagonal, kM, kN, alpha.get(), P(device_a.get()),
              kLeading, P(device_b.get()), kLeading, P(device_c.get()), kLeading));
          this->ExpectNear(this->Got(device_c, kM, kN), Wide(alpha) * product, "trmm");
          ASSERT_BLAS(ByType<T>(cublasStrsm, cublasDtrsm, cublasCtrsm, cublasZtrsm)(
              this->handle_, side, fill, op, diagonal, kM, kN, alpha.get(), P(device_a.get()),
              kLeading, P(device_c.get()), kLeading));
          this->ExpectNear(this->Got(device_c, kM, kN), (Wide(alpha) * Wide(alpha)) * right,
                           "trsm");
        }
      }
    }
  }
}

TYPED_TEST(MatricesTest, SumsAndDiagonals) {
  using T = TypeParam;
  const auto alpha = this->Alpha();
  const auto beta = this->Beta();
  const auto a = this->RandomMatrix();
  const auto b = this->RandomMatrix();
  Array<T> device_a(a);
  Array<T> device_b(b);
  for (const cublasOperation_t op : kOps) {
    Array<T> device_c(b);
    const bool plain = op == CUBLAS_OP_N;
    ASSERT_BLAS(ByType<T>(cublasSgeam, cublasDgeam, cublasCgeam, cublasZgeam)(
        this->handle_, op, CUBLAS_OP_N, kM, kN, alpha.get(), P(device_a.get()), kLeading,
        beta.get(), P(device_b.get()), kLeading, P(device_c.get()), kLeading));
    this->ExpectNear(this->Got(device_c, kM, kN),
                     Wide(alpha) * Op(General(a, plain ? kM : kN, plain ? kN : kM, kLeading), op) +
                         Wide(beta) * General(b, kM, kN, kLeading),
                     "geam");
  }
  for (const cublasSideMode_t side : kSides) {
    Array<T> device_c(b);
    const int length = side == CUBLAS_SIDE_LEFT ? kM : kN;
    ASSERT_BLAS(ByType<T>(cublasSdgmm, cublasDdgmm, cublasCdgmm, cublasZdgmm)(
        this->handle_, side, kM, kN, P(device_a.get()), kLeading, P(device_b.get()), 2,
        P(device_c.get()), kLeading));
    const Dense diagonal = Make(length, length, [&](int row, int column) {
      return row == column ? At(b, 2 * row) : Wide(0);
    });
    const Dense matrix = General(a, kM, kN, kLeading);
    this->ExpectNear(this->Got(device_c, kM, kN),
                     side == CUBLAS_SIDE_LEFT ? diagonal * matrix : matrix * diagonal, "dgmm");
  }
}

TYPED_TEST(MatricesTest, AFactorOfZeroReadsNothing) {
  using T = TypeParam;
  const T one = T(1);
  const T zero = T(0);
  const auto a = this->RandomMatrix();
  Array<T> device_a(a);
  Array<T> device_c(this->RandomMatrix());
  ASSERT_BLAS(ByType<T>(cublasSgeam, cublasDgeam, cublasCgeam, cublasZgeam)(
      this->handle_, CUBLAS_OP_T, CUBLAS_OP_N, kM, kN, P(&one), P(device_a.get()), kLeading,
      P(&zero), nullptr, kLeading, P(device_c.get()), kLeading));
  this->ExpectNear(this->Got(device_c, kM, kN), Op(General(a, kN, kM, kLeading), CUBLAS_OP_T),
                   "geam");
}

}  // namespace
}  // namespace torpor::emulator
