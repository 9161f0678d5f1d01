#pragma once

#include <cublasLt.h>

#include <cstdint>

// The descriptors of cuBLASLt as plain values, stored in the program's own memory, perhaps on its
// stack. The replacement library sends them by value inside the calls that use them; the emulated
// library reads them. A program changes a descriptor from one thread at a time.
namespace torpor {

// The layout of a matrix, or of a batch of `batch_count` matrices. Sizes and strides in elements.
struct LtMatrixLayout {
  static constexpr std::uint32_t kKind = 0x4c744c61;

  std::uint32_t kind = kKind;
  std::int32_t type = CUDA_R_32F;
  std::int32_t order = CUBLASLT_ORDER_COL;
  std::int32_t batch_count = 1;
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  std::int64_t leading = 0;
  std::int64_t batch_stride = 0;
  std::int64_t plane_offset = 0;
  std::int32_t batch_mode = CUBLASLT_BATCH_MODE_STRIDED;

  template <typename V>
  void Visit(V& v) {
    v(type), v(order), v(batch_count), v(rows), v(columns), v(leading), v(batch_stride);
  }
};
static_assert(sizeof(LtMatrixLayout) <= sizeof(cublasLtMatrixLayoutOpaque_t));

// The operations of a matmul besides the product. A data type of -1 means cuBLASLt's default.
struct LtMatmulDescriptor {
  static constexpr std::uint32_t kKind = 0x4c744d64;

  std::uint32_t kind = kKind;
  std::int32_t compute_type = CUBLAS_COMPUTE_32F;
  std::int32_t scale_type = CUDA_R_32F;  // of alpha and beta
  std::int32_t pointer_mode = CUBLASLT_POINTER_MODE_HOST;
  std::int32_t transa = CUBLAS_OP_N;
  std::int32_t transb = CUBLAS_OP_N;
  std::int32_t transc = CUBLAS_OP_N;
  std::int32_t fill_mode = CUBLAS_FILL_MODE_FULL;
  std::uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  std::int32_t bias_type = -1;
  std::uint64_t bias = 0;
  std::int64_t bias_batch_stride = 0;
  std::uint64_t aux = 0;
  std::int64_t aux_leading = 0;
  std::int64_t aux_batch_stride = 0;
  std::int64_t alpha_batch_stride = 0;
  std::uint64_t a_scale = 0;
  std::uint64_t b_scale = 0;
  std::uint64_t c_scale = 0;
  std::uint64_t d_scale = 0;
  std::uint64_t amax_d = 0;
  std::uint64_t aux_scale = 0;
  std::uint64_t aux_amax = 0;
  std::uint64_t d_out_scale = 0;
  std::uint64_t emulation = 0;
  std::int32_t aux_type = -1;
  std::int32_t sm_count_target = 0;
  std::int32_t a_scale_mode = 0;
  std::int32_t b_scale_mode = 0;
  std::int32_t c_scale_mode = 0;
  std::int32_t d_scale_mode = 0;
  std::int32_t aux_scale_mode = 0;
  std::int32_t d_out_scale_mode = 0;
  std::int8_t fast_accum = 0;

  // Visits the members that remoted calls carry: see LtIsRemotable.
  template <typename V>
  void Visit(V& v) {
    v(compute_type), v(scale_type), v(pointer_mode), v(transa), v(transb), v(epilogue);
    v(bias_type), v(bias), v(bias_batch_stride);
    v(aux_type), v(aux), v(aux_leading), v(aux_batch_stride);
    v(a_scale), v(b_scale), v(c_scale), v(d_scale), v(amax_d);
    v(sm_count_target), v(fast_accum);
  }
};
static_assert(sizeof(LtMatmulDescriptor) <= sizeof(cublasLtMatmulDescOpaque_t));

// Whether the descriptor can be sent. Block scales, vectors of alphas, triangles of C and scales of
// the auxiliary output can neither be sent nor computed by the emulated library.
inline bool LtIsRemotable(const LtMatmulDescriptor& d) {
  return d.transc == CUBLAS_OP_N && d.fill_mode == CUBLAS_FILL_MODE_FULL &&
         d.alpha_batch_stride == 0 && d.aux_scale == 0 && d.aux_amax == 0 && d.d_out_scale == 0 &&
         d.emulation == 0 && d.a_scale_mode == 0 && d.b_scale_mode == 0 && d.c_scale_mode == 0 &&
         d.d_scale_mode == 0 && d.aux_scale_mode == 0 && d.d_out_scale_mode == 0;
}

// A program's preferences for the choice of an algorithm.
struct LtMatmulPreference {
  static constexpr std::uint32_t kKind = 0x4c745066;

  std::uint32_t kind = kKind;
  std::uint32_t search_mode = CUBLASLT_SEARCH_BEST_FIT;
  std::uint64_t max_workspace = 0;
  std::uint32_t reduction_mask = CUBLASLT_REDUCTION_SCHEME_MASK;
  std::uint32_t min_alignment_a = 256;
  std::uint32_t min_alignment_b = 256;
  std::uint32_t min_alignment_c = 256;
  std::uint32_t min_alignment_d = 256;
  float max_waves = 0;
  std::uint64_t implementation_mask = ~std::uint64_t{0};

  template <typename V>
  void Visit(V& v) {
    v(search_mode), v(max_workspace), v(reduction_mask), v(min_alignment_a), v(min_alignment_b);
    v(min_alignment_c), v(min_alignment_d), v(max_waves), v(implementation_mask);
  }
};
static_assert(sizeof(LtMatmulPreference) <= sizeof(cublasLtMatmulPreferenceOpaque_t));

// Returns the value of a program's descriptor. Returns null for null, and for bytes that no Init or
// Create has made a descriptor.
template <typename Value>
Value* LtValueOf(void* descriptor) {
  auto* const value = static_cast<Value*>(descriptor);
  return value != nullptr && value->kind == Value::kKind ? value : nullptr;
}

}  // namespace torpor
