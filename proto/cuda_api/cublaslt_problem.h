#pragma once

#include <array>
#include <cstdint>

#include "nvidia/cublaslt/descriptors.h"
#include "nvidia/cublaslt/epilogue.h"
#include "proto/cuda_api/blas_extents.h"
#include "proto/cuda_api/cublas_scalar.h"

// A matmul of cuBLASLt in wire form, with checks and the memory that the matmul reaches. The client
// checks before sending; the server checks again, as the bytes are untrusted.
namespace torpor::wire {

struct CublasLtProblem {
  LtMatmulDescriptor matmul;
  LtMatrixLayout a;
  LtMatrixLayout b;
  LtMatrixLayout c;
  LtMatrixLayout d;

  template <typename V>
  void Visit(V& v) {
    v(matmul), v(a), v(b), v(c), v(d);
  }
};

// An algorithm in the hands of a program: the index of a heuristic's answer to a preference. The
// server finds the algorithm again, so that a client cannot forge bytes that the library trusts.
struct CublasLtAlgorithm {
  std::uint32_t requested = 0;  // 0: the library chooses
  std::uint32_t place = 0;
  LtMatmulPreference preference;

  template <typename V>
  void Visit(V& v) {
    v(requested), v(place), v(preference);
  }
};

inline constexpr std::uint32_t kMaxLtAlgorithms = 64;

// An answer of the heuristic.
struct CublasLtAnswer {
  std::int32_t status = 0;
  float waves = 0;
  std::uint64_t workspace_bytes = 0;

  template <typename V>
  void Visit(V& v) {
    v(status), v(waves), v(workspace_bytes);
  }
};

constexpr bool LtLayoutIsValid(const LtMatrixLayout& m) {
  const bool by_columns = m.order == CUBLASLT_ORDER_COL;
  const std::uint64_t contiguous = by_columns ? m.rows : m.columns;
  return IsDataType(m.type) && (by_columns || m.order == CUBLASLT_ORDER_ROW) &&
         m.batch_count >= 1 && m.batch_stride >= 0 && m.leading >= 1 &&
         static_cast<std::uint64_t>(m.leading) >= contiguous;
}

// Bytes of `count` runs of `contiguous` elements, `leading` apart, in each of `batches` batches.
constexpr std::uint64_t LtBytes(std::uint64_t element_bytes, std::uint64_t contiguous,
                                std::uint64_t count, std::uint64_t leading,
                                std::uint64_t batch_stride, std::int32_t batches) {
  if (contiguous == 0 || count == 0) return 0;
  const std::uint64_t one = Plus(Times(leading, count - 1), contiguous);
  const auto further = static_cast<std::uint64_t>(batches - 1);
  return Times(Plus(Times(batch_stride, further), one), element_bytes);
}

// The layout must be valid.
constexpr std::uint64_t LtLayoutBytes(const LtMatrixLayout& m) {
  const bool by_columns = m.order == CUBLASLT_ORDER_COL;
  return LtBytes(DataTypeBytes(m.type), by_columns ? m.rows : m.columns,
                 by_columns ? m.columns : m.rows, static_cast<std::uint64_t>(m.leading),
                 static_cast<std::uint64_t>(m.batch_stride), m.batch_count);
}

constexpr std::uint64_t LtScalarBytes(std::int32_t scale_type) { return DataTypeBytes(scale_type); }

constexpr std::int32_t LtBiasType(const CublasLtProblem& p) {
  if (p.matmul.bias_type != -1) return p.matmul.bias_type;
  switch (p.d.type) {
    case CUDA_R_8I:
      return p.matmul.scale_type;
    case CUDA_R_8F_E4M3:
    case CUDA_R_8F_E5M2:
      return CUDA_R_16BF;
    default:
      return p.d.type;
  }
}
constexpr std::int32_t LtAuxType(const CublasLtProblem& p) {
  return p.matmul.aux_type == -1 ? p.d.type : p.matmul.aux_type;
}

constexpr std::uint64_t LtBiasBytes(const CublasLtProblem& p) {
  if (!LtHasBias(p.matmul)) return 0;
  const bool by_columns = LtHas(p.matmul, kLtBiasGradientB);
  return LtBytes(DataTypeBytes(LtBiasType(p)), by_columns ? p.d.columns : p.d.rows, 1, 1,
                 static_cast<std::uint64_t>(p.matmul.bias_batch_stride), p.d.batch_count);
}
constexpr std::uint64_t LtAuxBytes(const CublasLtProblem& p) {
  if (!LtHas(p.matmul, kLtAuxiliary)) return 0;
  const bool mask = LtAuxIsMask(p.matmul);
  const std::uint64_t per_word = mask ? 8 : 1;
  return LtBytes(mask ? 1 : DataTypeBytes(LtAuxType(p)), (p.d.rows + per_word - 1) / per_word,
                 p.d.columns, static_cast<std::uint64_t>(p.matmul.aux_leading) / per_word,
                 static_cast<std::uint64_t>(p.matmul.aux_batch_stride) / per_word, p.d.batch_count);
}

constexpr bool LtEpilogueIsValid(const CublasLtProblem& p) {
  const LtMatmulDescriptor& matmul = p.matmul;
  if (!LtEpilogueIsKnown(matmul.epilogue)) return false;
  if (LtHasBias(matmul) && (matmul.bias_batch_stride < 0 || !IsDataType(LtBiasType(p)))) {
    return false;
  }
  if (!LtHas(matmul, kLtAuxiliary)) return true;
  const std::int64_t multiple = LtAuxIsMask(matmul) ? 128 : 8;
  return matmul.aux_leading >= 1 && matmul.aux_leading % multiple == 0 &&
         static_cast<std::uint64_t>(matmul.aux_leading) >= p.d.rows &&
         matmul.aux_batch_stride >= 0 && matmul.aux_batch_stride % multiple == 0 &&
         IsDataType(LtAuxType(p));
}

// D = op(A) op(B) + C.
constexpr bool LtShapesAgree(const CublasLtProblem& p) {
  const bool plain_a = p.matmul.transa == CUBLAS_OP_N;
  const bool plain_b = p.matmul.transb == CUBLAS_OP_N;
  const std::uint64_t m = plain_a ? p.a.rows : p.a.columns;
  const std::uint64_t k = plain_a ? p.a.columns : p.a.rows;
  const std::uint64_t n = plain_b ? p.b.columns : p.b.rows;
  const auto has_shape = [&](const LtMatrixLayout& x) {
    return x.rows == m && x.columns == n && x.batch_count == p.a.batch_count;
  };
  return (plain_b ? p.b.rows : p.b.columns) == k && p.b.batch_count == p.a.batch_count &&
         has_shape(p.c) && has_shape(p.d);
}

constexpr bool LtProblemIsValid(const CublasLtProblem& p) {
  return IsComputeType(p.matmul.compute_type) && IsDataType(p.matmul.scale_type) &&
         (p.matmul.pointer_mode == CUBLASLT_POINTER_MODE_HOST ||
          p.matmul.pointer_mode == CUBLASLT_POINTER_MODE_DEVICE) &&
         IsOperation(p.matmul.transa) && IsOperation(p.matmul.transb) &&
         p.matmul.sm_count_target >= 0 && LtLayoutIsValid(p.a) && LtLayoutIsValid(p.b) &&
         LtLayoutIsValid(p.c) && LtLayoutIsValid(p.d) && LtShapesAgree(p) && LtEpilogueIsValid(p);
}

// Returns `p` with the alignments of addresses in place of the addresses, as the heuristic looks at
// alignments only: so one answer serves all such problems.
constexpr CublasLtProblem LtWithoutAddresses(CublasLtProblem p) {
  constexpr std::uint64_t kWidest = 256;
  for (std::uint64_t* address :
       {&p.matmul.bias, &p.matmul.aux, &p.matmul.a_scale, &p.matmul.b_scale, &p.matmul.c_scale,
        &p.matmul.d_scale, &p.matmul.amax_d}) {
    const std::uint64_t alignment = *address & (0 - *address);
    *address = alignment > kWidest ? kWidest : alignment;
  }
  return p;
}

}  // namespace torpor::wire
