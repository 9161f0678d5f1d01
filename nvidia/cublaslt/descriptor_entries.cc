// The C entries that create, change and read descriptors. Both the replacement library and the
// emulated library compile this file: a descriptor is the program's own memory in either.
#include <cublasLt.h>

#include <cstddef>
#include <cstring>
#include <new>
#include <span>

#include "nvidia/cublaslt/descriptors.h"

namespace torpor {
namespace {

// The position of an attribute in its descriptor.
struct Attribute {
  int id;
  std::size_t offset;
  std::size_t bytes;
};

#define TORPOR_ATTRIBUTE(id, type, member) \
  { id, offsetof(type, member), sizeof(type::member) }

constexpr Attribute kLayoutAttributes[] = {
    TORPOR_ATTRIBUTE(CUBLASLT_MATRIX_LAYOUT_TYPE, LtMatrixLayout, type),
    TORPOR_ATTRIBUTE(CUBLASLT_MATRIX_LAYOUT_ORDER, LtMatrixLayout, order),
    TORPOR_ATTRIBUTE(CUBLASLT_MATRIX_LAYOUT_ROWS, LtMatrixLayout, rows),
    TORPOR_ATTRIBUTE(CUBLASLT_MATRIX_LAYOUT_COLS, LtMatrixLayout, columns),
    TORPOR_ATTRIBUTE(CUBLASLT_MATRIX_LAYOUT_LD, LtMatrixLayout, leading),
    TORPOR_ATTRIBUTE(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, LtMatrixLayout, batch_count),
    TORPOR_ATTRIBUTE(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, LtMatrixLayout, batch_stride),
    TORPOR_ATTRIBUTE(CUBLASLT_MATRIX_LAYOUT_PLANE_OFFSET, LtMatrixLayout, plane_offset),
    TORPOR_ATTRIBUTE(CUBLASLT_MATRIX_LAYOUT_BATCH_MODE, LtMatrixLayout, batch_mode),
};

#define TORPOR_MATMUL(name, member) \
  TORPOR_ATTRIBUTE(CUBLASLT_MATMUL_DESC_##name, LtMatmulDescriptor, member)

constexpr Attribute kMatmulAttributes[] = {
    TORPOR_MATMUL(COMPUTE_TYPE, compute_type),
    TORPOR_MATMUL(SCALE_TYPE, scale_type),
    TORPOR_MATMUL(POINTER_MODE, pointer_mode),
    TORPOR_MATMUL(TRANSA, transa),
    TORPOR_MATMUL(TRANSB, transb),
    TORPOR_MATMUL(TRANSC, transc),
    TORPOR_MATMUL(FILL_MODE, fill_mode),
    TORPOR_MATMUL(EPILOGUE, epilogue),
    TORPOR_MATMUL(BIAS_POINTER, bias),
    TORPOR_MATMUL(BIAS_BATCH_STRIDE, bias_batch_stride),
    TORPOR_MATMUL(EPILOGUE_AUX_POINTER, aux),
    TORPOR_MATMUL(EPILOGUE_AUX_LD, aux_leading),
    TORPOR_MATMUL(EPILOGUE_AUX_BATCH_STRIDE, aux_batch_stride),
    TORPOR_MATMUL(ALPHA_VECTOR_BATCH_STRIDE, alpha_batch_stride),
    TORPOR_MATMUL(SM_COUNT_TARGET, sm_count_target),
    TORPOR_MATMUL(A_SCALE_POINTER, a_scale),
    TORPOR_MATMUL(B_SCALE_POINTER, b_scale),
    TORPOR_MATMUL(C_SCALE_POINTER, c_scale),
    TORPOR_MATMUL(D_SCALE_POINTER, d_scale),
    TORPOR_MATMUL(AMAX_D_POINTER, amax_d),
    TORPOR_MATMUL(EPILOGUE_AUX_DATA_TYPE, aux_type),
    TORPOR_MATMUL(EPILOGUE_AUX_SCALE_POINTER, aux_scale),
    TORPOR_MATMUL(EPILOGUE_AUX_AMAX_POINTER, aux_amax),
    TORPOR_MATMUL(FAST_ACCUM, fast_accum),
    TORPOR_MATMUL(BIAS_DATA_TYPE, bias_type),
    TORPOR_MATMUL(A_SCALE_MODE, a_scale_mode),
    TORPOR_MATMUL(B_SCALE_MODE, b_scale_mode),
    TORPOR_MATMUL(C_SCALE_MODE, c_scale_mode),
    TORPOR_MATMUL(D_SCALE_MODE, d_scale_mode),
    TORPOR_MATMUL(EPILOGUE_AUX_SCALE_MODE, aux_scale_mode),
    TORPOR_MATMUL(D_OUT_SCALE_POINTER, d_out_scale),
    TORPOR_MATMUL(D_OUT_SCALE_MODE, d_out_scale_mode),
    TORPOR_MATMUL(EMULATION_DESCRIPTOR, emulation),
};

#define TORPOR_PREFERENCE(name, member) \
  TORPOR_ATTRIBUTE(CUBLASLT_MATMUL_PREF_##name, LtMatmulPreference, member)

constexpr Attribute kPreferenceAttributes[] = {
    TORPOR_PREFERENCE(SEARCH_MODE, search_mode),
    TORPOR_PREFERENCE(MAX_WORKSPACE_BYTES, max_workspace),
    TORPOR_PREFERENCE(REDUCTION_SCHEME_MASK, reduction_mask),
    TORPOR_PREFERENCE(MIN_ALIGNMENT_A_BYTES, min_alignment_a),
    TORPOR_PREFERENCE(MIN_ALIGNMENT_B_BYTES, min_alignment_b),
    TORPOR_PREFERENCE(MIN_ALIGNMENT_C_BYTES, min_alignment_c),
    TORPOR_PREFERENCE(MIN_ALIGNMENT_D_BYTES, min_alignment_d),
    TORPOR_PREFERENCE(MAX_WAVES_COUNT, max_waves),
    TORPOR_PREFERENCE(IMPL_MASK, implementation_mask),
};

const Attribute* Find(std::span<const Attribute> attributes, int id) {
  for (const Attribute& attribute : attributes)
    if (attribute.id == id) return &attribute;
  return nullptr;
}

// Sets the attribute `id` from `bytes` bytes, by the rules of cuBLASLt.
template <typename Value>
cublasStatus_t Set(std::span<const Attribute> attributes, void* descriptor, int id,
                   const void* buffer, std::size_t bytes) {
  auto* const value = LtValueOf<Value>(descriptor);
  const Attribute* const attribute = Find(attributes, id);
  if (value == nullptr || attribute == nullptr || buffer == nullptr || bytes != attribute->bytes)
    return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(reinterpret_cast<char*>(value) + attribute->offset, buffer, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

// `bytes` of 0 asks for the attribute's size only.
template <typename Value>
cublasStatus_t Get(std::span<const Attribute> attributes, void* descriptor, int id, void* buffer,
                   std::size_t bytes, std::size_t* written) {
  const auto* const value = LtValueOf<Value>(descriptor);
  const Attribute* const attribute = Find(attributes, id);
  if (value == nullptr || attribute == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  if (bytes == 0 && written == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  if (bytes != 0 && (buffer == nullptr || bytes < attribute->bytes))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (written != nullptr) *written = attribute->bytes;
  if (bytes != 0) {
    std::memcpy(buffer, reinterpret_cast<const char*>(value) + attribute->offset, attribute->bytes);
  }
  return CUBLAS_STATUS_SUCCESS;
}

// Makes `descriptor`, with `bytes` bytes of memory, a descriptor of `value`.
template <typename Value, typename Opaque>
cublasStatus_t Init(Opaque* descriptor, std::size_t bytes, const Value& value) {
  if (descriptor == nullptr || bytes < sizeof(Value)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memset(descriptor, 0, bytes);
  new (descriptor) Value(value);
  return CUBLAS_STATUS_SUCCESS;
}

// Allocates a descriptor with `value`, owned by the program until Destroy.
template <typename Value, typename Opaque>
cublasStatus_t Create(Opaque** descriptor, const Value& value) {
  if (descriptor == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *descriptor = new (std::nothrow) Opaque;
  if (*descriptor == nullptr) return CUBLAS_STATUS_ALLOC_FAILED;
  return Init(*descriptor, sizeof(Opaque), value);
}

template <typename Opaque>
cublasStatus_t Destroy(Opaque* descriptor) {
  delete descriptor;
  return CUBLAS_STATUS_SUCCESS;
}

LtMatrixLayout Layout(cudaDataType type, std::uint64_t rows, std::uint64_t columns,
                      std::int64_t leading) {
  return {.type = type, .rows = rows, .columns = columns, .leading = leading};
}

LtMatmulDescriptor Matmul(cublasComputeType_t compute, cudaDataType_t scale) {
  return {.compute_type = compute, .scale_type = scale};
}

}  // namespace
}  // namespace torpor

using torpor::LtMatmulDescriptor;
using torpor::LtMatmulPreference;
using torpor::LtMatrixLayout;

#pragma GCC visibility push(default)
extern "C" {

cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t layout, size_t size,
                                                 cudaDataType type, uint64_t rows, uint64_t columns,
                                                 int64_t leading) {
  return torpor::Init(layout, size, torpor::Layout(type, rows, columns, leading));
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t leading) {
  return torpor::Create(layout, torpor::Layout(type, rows, columns, leading));
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  return torpor::Destroy(layout);
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void* buffer, size_t bytes) {
  return torpor::Set<LtMatrixLayout>(torpor::kLayoutAttributes, layout, attribute, buffer, bytes);
}
cublasStatus_t cublasLtMatrixLayoutGetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                void* buffer, size_t bytes, size_t* written) {
  return torpor::Get<LtMatrixLayout>(torpor::kLayoutAttributes, layout, attribute, buffer, bytes,
                                     written);
}

cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t descriptor, size_t size,
                                               cublasComputeType_t compute, cudaDataType_t scale) {
  return torpor::Init(descriptor, size, torpor::Matmul(compute, scale));
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* descriptor,
                                        cublasComputeType_t compute, cudaDataType_t scale) {
  return torpor::Create(descriptor, torpor::Matmul(compute, scale));
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t descriptor) {
  return torpor::Destroy(descriptor);
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t descriptor,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* buffer, size_t bytes) {
  return torpor::Set<LtMatmulDescriptor>(torpor::kMatmulAttributes, descriptor, attribute, buffer,
                                         bytes);
}
cublasStatus_t cublasLtMatmulDescGetAttribute(cublasLtMatmulDesc_t descriptor,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              void* buffer, size_t bytes, size_t* written) {
  return torpor::Get<LtMatmulDescriptor>(torpor::kMatmulAttributes, descriptor, attribute, buffer,
                                         bytes, written);
}

cublasStatus_t cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t preference,
                                                     size_t size) {
  return torpor::Init(preference, size, LtMatmulPreference());
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  return torpor::Create(preference, LtMatmulPreference());
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  return torpor::Destroy(preference);
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* buffer, size_t bytes) {
  return torpor::Set<LtMatmulPreference>(torpor::kPreferenceAttributes, preference, attribute,
                                         buffer, bytes);
}
cublasStatus_t cublasLtMatmulPreferenceGetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    void* buffer, size_t bytes, size_t* written) {
  return torpor::Get<LtMatmulPreference>(torpor::kPreferenceAttributes, preference, attribute,
                                         buffer, bytes, written);
}

}  // extern "C"
#pragma GCC visibility pop
