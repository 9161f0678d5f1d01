// Level 2, in every precision.
#include "tests/emulator/blas/typed_blas.h"

namespace torpor::emulator {
namespace {

constexpr int kM = 9;
constexpr int kN = 7;
constexpr int kLeading = 12;
constexpr int kStepX = 2;
constexpr int kStepY = -1;

template <typename T>
class MatrixVectorTest : public TypedBlasTest<T> {};
TYPED_TEST_SUITE(MatrixVectorTest, ElementTypes);

TYPED_TEST(MatrixVectorTest, Gemv) {
  using T = TypeParam;
  const auto alpha = this->Alpha();
  const auto beta = this->Beta();
  for (const cublasOperation_t op : kOps) {
    const int in = op == CUBLAS_OP_N ? kN : kM;
    const int out = kM + kN - in;
    const auto a = this->Random(kLeading * kN);
    const auto x = this->Random(2 * in);
    const auto y = this->Random(out);
    Array<T> device_a(a);
    Array<T> device_x(x);
    Array<T> device_y(y);
    ASSERT_BLAS(ByType<T>(cublasSgemv, cublasDgemv, cublasCgemv, cublasZgemv)(
        this->handle_, op, kM, kN, alpha.get(), P(device_a.get()), kLeading, P(device_x.get()),
        kStepX, beta.get(), P(device_y.get()), kStepY));
    this->ExpectNear(Column(device_y.Download(this->stream_), out, kStepY),
                     Wide(alpha) * (Op(General(a, kM, kN, kLeading), op) * Column(x, in, kStepX)) +
                         Wide(beta) * Column(y, out, kStepY),
                     "gemv");
  }
}

TYPED_TEST(MatrixVectorTest, Gbmv) {
  using T = TypeParam;
  constexpr int kBelow = 2;
  constexpr int kAbove = 3;
  const auto alpha = this->Alpha();
  const auto beta = this->Beta();
  for (const cublasOperation_t op : kOps) {
    const int in = op == CUBLAS_OP_N ? kN : kM;
    const int out = kM + kN - in;
    const auto a = this->Random(kLeading * kN);
    const auto x = this->Random(2 * in);
    const auto y = this->Random(out);
    Array<T> device_a(a);
    Array<T> device_x(x);
    Array<T> device_y(y);
    ASSERT_BLAS(ByType<T>(cublasSgbmv, cublasDgbmv, cublasCgbmv, cublasZgbmv)(
        this->handle_, op, kM, kN, kBelow, kAbove, alpha.get(), P(device_a.get()), kLeading,
        P(device_x.get()), kStepX, beta.get(), P(device_y.get()), kStepY));
    this->ExpectNear(
        Column(device_y.Download(this->stream_), out, kStepY),
        Wide(alpha) * (Op(Band(a, kM, kN, kBelow, kAbove, kLeading), op) * Column(x, in, kStepX)) +
            Wide(beta) * Column(y, out, kStepY),
        "gbmv");
  }
}

TYPED_TEST(MatrixVectorTest, RankOneUpdates) {
  using T = TypeParam;
  const auto alpha = this->Alpha();
  for (const bool conjugates : {false, true}) {
    const auto a = this->Random(kLeading * kN);
    const auto x = this->Random(2 * kM);
    const auto y = this->Random(kN);
    Array<T> device_a(a);
    Array<T> device_x(x);
    Array<T> device_y(y);
    const auto plain = ByType<T>(cublasSger, cublasDger, cublasCgeru, cublasZgeru);
    const auto conjugate = ByType<T>(cublasSger, cublasDger, cublasCgerc, cublasZgerc);
    ASSERT_BLAS((conjugates ? conjugate : plain)(this->handle_, kM, kN, alpha.get(),
                                                 P(device_x.get()), kStepX, P(device_y.get()),
                                                 kStepY, P(device_a.get()), kLeading));
    this->ExpectNear(
        General(device_a.Download(this->stream_), kM, kN, kLeading),
        General(a, kM, kN, kLeading) +
            Wide(alpha) * (Column(x, kM, kStepX) *
                           Op(Column(y, kN, kStepY), conjugates ? CUBLAS_OP_C : CUBLAS_OP_T)),
        "ger");
  }
}

// y = alpha A x + beta y for every way to store half of A.
TYPED_TEST(MatrixVectorTest, SymmetricAndHermitianTimesVector) {
  using T = TypeParam;
  constexpr int kDiagonals2 = 2;
  const auto alpha = this->Alpha();
  const auto beta = this->Beta();
  for (const cublasFillMode_t fill : kFills) {
    const auto a = this->Random(kLeading * kN);
    const auto x = this->Random(2 * kN);
    const auto y = this->Random(kN);
    Array<T> device_a(a);
    Array<T> device_x(x);
    const auto expect = [&](const Dense& matrix, const char* what, auto call) {
      Array<T> device_y(y);
      ASSERT_BLAS(call(P(device_y.get())));
      this->ExpectNear(
          Column(device_y.Download(this->stream_), kN, kStepY),
          Wide(alpha) * (matrix * Column(x, kN, kStepX)) + Wide(beta) * Column(y, kN, kStepY),
          what);
    };
    expect(Symmetric(General(a, kN, kN, kLeading), fill), "symv", [&](auto device_y) {
      return ByType<T>(cublasSsymv, cublasDsymv, cublasCsymv, cublasZsymv)(
          this->handle_, fill, kN, alpha.get(), P(device_a.get()), kLeading, P(device_x.get()),
          kStepX, beta.get(), device_y, kStepY);
    });
    const auto mirrored = [&](const Dense& half) {
      return kIsComplex<T> ? Hermitian(half, fill) : Symmetric(half, fill);
    };
    if constexpr (kIsComplex<T>) {
      expect(mirrored(General(a, kN, kN, kLeading)), "hemv", [&](auto device_y) {
        return ByType<T>(0, 0, cublasChemv, cublasZhemv)(
            this->handle_, fill, kN, alpha.get(), P(device_a.get()), kLeading, P(device_x.get()),
            kStepX, beta.get(), device_y, kStepY);
      });
    }
    const bool is_lower = fill == CUBLAS_FILL_MODE_LOWER;
    expect(
        mirrored(Band(a, kN, kN, is_lower ? kDiagonals2 : 0, is_lower ? 0 : kDiagonals2, kLeading)),
        "sbmv, hbmv", [&](auto device_y) {
          return ByType<T>(cublasSsbmv, cublasDsbmv, cublasChbmv, cublasZhbmv)(
              this->handle_, fill, kN, kDiagonals2, alpha.get(), P(device_a.get()), kLeading,
              P(device_x.get()), kStepX, beta.get(), device_y, kStepY);
        });
    expect(mirrored(Packed(a, kN, fill)), "spmv, hpmv", [&](auto device_y) {
      return ByType<T>(cublasSspmv, cublasDspmv, cublasChpmv, cublasZhpmv)(
          this->handle_, fill, kN, alpha.get(), P(device_a.get()), P(device_x.get()), kStepX,
          beta.get(), device_y, kStepY);
    });
  }
}

// A += alpha x xᵀ and A += alpha (x yᵀ + y xᵀ), or their Hermitian forms, on half of A.
TYPED_TEST(MatrixVectorTest, SymmetricAndHermitianUpdates) {
  using T = TypeParam;
  const auto alpha = this->Alpha();
  const auto real_alpha = static_cast<Real<T>>(1.5);
  const auto a = this->Random(kLeading * kN);
  const auto x = this->Random(2 * kN);
  const auto y = this->Random(kN);
  Array<T> device_x(x);
  Array<T> device_y(y);
  const Dense column_x = Column(x, kN, kStepX);
  const Dense column_y = Column(y, kN, kStepY);
  constexpr cublasOperation_t kMirror = kIsComplex<T> ? CUBLAS_OP_C : CUBLAS_OP_T;
  const Dense twice = Wide(alpha) * (column_x * Op(column_y, CUBLAS_OP_T)) +
                      Wide(alpha) * (column_y * Op(column_x, CUBLAS_OP_T));
  const Dense hermitian_twice =
      Wide(alpha) * (column_x * Op(column_y, kMirror)) +
      (kIsComplex<T> ? std::conj(Wide(alpha)) : Wide(alpha)) * (column_y * Op(column_x, kMirror));
  for (const cublasFillMode_t fill : kFills) {
    const auto expect = [&](bool is_packed, bool is_hermitian, const Dense& added, const char* what,
                            auto call) {
      Array<T> device_a(a);
      ASSERT_BLAS(call(P(device_a.get())));
      const auto got = device_a.Download(this->stream_);
      Dense before = is_packed ? Packed(a, kN, fill) : General(a, kN, kN, kLeading);
      // What a Hermitian diagonal holds beside its real part does not count.
      for (int i = 0; i < kN && is_hermitian; ++i) before(i, i) = before(i, i).real();
      this->ExpectNear(is_packed ? Packed(got, kN, fill) : General(got, kN, kN, kLeading),
                       before + added, what, true, fill);
    };
    expect(false, false, Wide(alpha) * (column_x * Op(column_x, CUBLAS_OP_T)), "syr",
           [&](auto device_a) {
             return ByType<T>(cublasSsyr, cublasDsyr, cublasCsyr, cublasZsyr)(
                 this->handle_, fill, kN, alpha.get(), P(device_x.get()), kStepX, device_a,
                 kLeading);
           });
    expect(false, false, twice, "syr2", [&](auto device_a) {
      return ByType<T>(cublasSsyr2, cublasDsyr2, cublasCsyr2, cublasZsyr2)(
          this->handle_, fill, kN, alpha.get(), P(device_x.get()), kStepX, P(device_y.get()),
          kStepY, device_a, kLeading);
    });
    const Dense once = Wide(1.5) * (column_x * Op(column_x, kMirror));
    expect(true, kIsComplex<T>, once, "spr, hpr", [&](auto device_a) {
      return ByType<T>(cublasSspr, cublasDspr, cublasChpr, cublasZhpr)(
          this->handle_, fill, kN, &real_alpha, P(device_x.get()), kStepX, device_a);
    });
    expect(true, kIsComplex<T>, hermitian_twice, "spr2, hpr2", [&](auto device_a) {
      return ByType<T>(cublasSspr2, cublasDspr2, cublasChpr2, cublasZhpr2)(
          this->handle_, fill, kN, alpha.get(), P(device_x.get()), kStepX, P(device_y.get()),
          kStepY, device_a);
    });
    if constexpr (kIsComplex<T>) {
      expect(false, true, once, "her", [&](auto device_a) {
        return ByType<T>(0, 0, cublasCher, cublasZher)(
            this->handle_, fill, kN, &real_alpha, P(device_x.get()), kStepX, device_a, kLeading);
      });
      expect(false, true, hermitian_twice, "her2", [&](auto device_a) {
        return ByType<T>(0, 0, cublasCher2, cublasZher2)(
            this->handle_, fill, kN, alpha.get(), P(device_x.get()), kStepX, P(device_y.get()),
            kStepY, device_a, kLeading);
      });
    }
  }
}

// x becomes A x, and A's solution for x gives it back.
TYPED_TEST(MatrixVectorTest, Triangles) {
  using T = TypeParam;
  constexpr int kBand = 3;
  for (const cublasFillMode_t fill : kFills) {
    for (const cublasOperation_t op : kOps) {
      for (const cublasDiagType_t diagonal : kDiagonals) {
        const auto x = this->Random(2 * kN);
        const auto expect = [&](const Dense& matrix, const char* what, auto multiply, auto solve) {
          Array<T> device_x(x);
          ASSERT_BLAS(multiply(P(device_x.get())));
          this->ExpectNear(Column(device_x.Download(this->stream_), kN, kStepX),
                           Op(matrix, op) * Column(x, kN, kStepX), what);
          ASSERT_BLAS(solve(P(device_x.get())));
          this->ExpectNear(Column(device_x.Download(this->stream_), kN, kStepX),
                           Column(x, kN, kStepX), what);
        };
        const auto full = this->Dominant(this->Random(kLeading * kN), kN, kLeading);
        Array<T> device_full(full);
        expect(
            Triangle(General(full, kN, kN, kLeading), fill, diagonal), "trmv, trsv",
            [&](auto device_x) {
              return ByType<T>(cublasStrmv, cublasDtrmv, cublasCtrmv, cublasZtrmv)(
                  this->handle_, fill, op, diagonal, kN, P(device_full.get()), kLeading, device_x,
                  kStepX);
            },
            [&](auto device_x) {
              return ByType<T>(cublasStrsv, cublasDtrsv, cublasCtrsv, cublasZtrsv)(
                  this->handle_, fill, op, diagonal, kN, P(device_full.get()), kLeading, device_x,
                  kStepX);
            });
        const bool is_lower = fill == CUBLAS_FILL_MODE_LOWER;
        auto band = this->Random(kLeading * kN);
        for (int i = 0; i < kN; ++i) {
          const int diagonal_at = (is_lower ? 0 : kBand) + i * kLeading;
          band[static_cast<std::size_t>(diagonal_at)] += T(8);
        }
        Array<T> device_band(band);
        expect(
            Triangle(Band(band, kN, kN, is_lower ? kBand : 0, is_lower ? 0 : kBand, kLeading), fill,
                     diagonal),
            "tbmv, tbsv",
            [&](auto device_x) {
              return ByType<T>(cublasStbmv, cublasDtbmv, cublasCtbmv, cublasZtbmv)(
                  this->handle_, fill, op, diagonal, kN, kBand, P(device_band.get()), kLeading,
                  device_x, kStepX);
            },
            [&](auto device_x) {
              return ByType<T>(cublasStbsv, cublasDtbsv, cublasCtbsv, cublasZtbsv)(
                  this->handle_, fill, op, diagonal, kN, kBand, P(device_band.get()), kLeading,
                  device_x, kStepX);
            });
        auto packed = this->Random(kN * (kN + 1) / 2);
        for (int i = 0, at = 0; i < kN; ++i) {
          if (!is_lower) at += i;
          packed[static_cast<std::size_t>(at)] += T(8);
          at += is_lower ? kN - i : 1;
        }
        Array<T> device_packed(packed);
        expect(
            Triangle(Packed(packed, kN, fill), fill, diagonal), "tpmv, tpsv",
            [&](auto device_x) {
              return ByType<T>(cublasStpmv, cublasDtpmv, cublasCtpmv, cublasZtpmv)(
                  this->handle_, fill, op, diagonal, kN, P(device_packed.get()), device_x, kStepX);
            },
            [&](auto device_x) {
              return ByType<T>(cublasStpsv, cublasDtpsv, cublasCtpsv, cublasZtpsv)(
                  this->handle_, fill, op, diagonal, kN, P(device_packed.get()), device_x, kStepX);
            });
      }
    }
  }
}

TYPED_TEST(MatrixVectorTest, PackingAndUnpacking) {
  using T = TypeParam;
  for (const cublasFillMode_t fill : kFills) {
    const auto a = this->Random(kLeading * kN);
    Array<T> device_a(a);
    Array<T> packed(this->Random(kN * (kN + 1) / 2));
    Array<T> unpacked(a);
    ASSERT_BLAS(ByType<T>(cublasStrttp, cublasDtrttp, cublasCtrttp, cublasZtrttp)(
        this->handle_, fill, kN, P(device_a.get()), kLeading, P(packed.get())));
    this->ExpectNear(Packed(packed.Download(this->stream_), kN, fill), General(a, kN, kN, kLeading),
                     "trttp", true, fill);
    ASSERT_BLAS(ByType<T>(cublasStpttr, cublasDtpttr, cublasCtpttr, cublasZtpttr)(
        this->handle_, fill, kN, P(packed.get()), P(unpacked.get()), kLeading));
    EXPECT_EQ(unpacked.Download(this->stream_), a);
  }
}

}  // namespace
}  // namespace torpor::emulator
