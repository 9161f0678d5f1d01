#include "server/executor/library/cublaslt_descriptors.h"

namespace torpor::executor {

CublasLtDescriptors::CublasLtDescriptors(const CublasLtFunctions& functions,
                                         const wire::CublasLtProblem& problem)
    : functions_(functions) {
  MakeMatmul(problem.matmul);
  a_ = MakeLayout(problem.a);
  b_ = MakeLayout(problem.b);
  c_ = MakeLayout(problem.c);
  d_ = MakeLayout(problem.d);
}

CublasLtDescriptors::~CublasLtDescriptors() {
  for (const cublasLtMatrixLayout_t layout : {a_, b_, c_, d_}) {
    if (layout != nullptr) functions_.layout_destroy(layout);
  }
  if (matmul_ != nullptr) functions_.matmul_destroy(matmul_);
}

void CublasLtDescriptors::MakeMatmul(const LtMatmulDescriptor& value) {
  const LtMatmulDescriptor untouched;
  Check(functions_.matmul_create(&matmul_, static_cast<cublasComputeType_t>(value.compute_type),
                                 static_cast<cudaDataType_t>(value.scale_type)));
  // Attributes with default values stay unset, because the library may be newer and know a better
  // default.
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, auto member) {
    if (!ok_ || value.*member == untouched.*member) return;
    Check(functions_.matmul_set(matmul_, attribute, &(value.*member), sizeof(value.*member)));
  };
  set(CUBLASLT_MATMUL_DESC_POINTER_MODE, &LtMatmulDescriptor::pointer_mode);
  set(CUBLASLT_MATMUL_DESC_TRANSA, &LtMatmulDescriptor::transa);
  set(CUBLASLT_MATMUL_DESC_TRANSB, &LtMatmulDescriptor::transb);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, &LtMatmulDescriptor::epilogue);
  set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &LtMatmulDescriptor::bias_type);
  set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, &LtMatmulDescriptor::bias);
  set(CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, &LtMatmulDescriptor::bias_batch_stride);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, &LtMatmulDescriptor::aux_type);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &LtMatmulDescriptor::aux);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &LtMatmulDescriptor::aux_leading);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, &LtMatmulDescriptor::aux_batch_stride);
  set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &LtMatmulDescriptor::a_scale);
  set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, &LtMatmulDescriptor::b_scale);
  set(CUBLASLT_MATMUL_DESC_C_SCALE_POINTER, &LtMatmulDescriptor::c_scale);
  set(CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, &LtMatmulDescriptor::d_scale);
  set(CUBLASLT_MATMUL_DESC_AMAX_D_POINTER, &LtMatmulDescriptor::amax_d);
  set(CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, &LtMatmulDescriptor::sm_count_target);
  set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, &LtMatmulDescriptor::fast_accum);
}

cublasLtMatrixLayout_t CublasLtDescriptors::MakeLayout(const LtMatrixLayout& value) {
  cublasLtMatrixLayout_t layout = nullptr;
  if (!ok_) return layout;
  Check(functions_.layout_create(&layout, static_cast<cudaDataType>(value.type), value.rows,
                                 value.columns, value.leading));
  const LtMatrixLayout untouched;
  const auto set = [&](cublasLtMatrixLayoutAttribute_t attribute, auto member) {
    if (!ok_ || value.*member == untouched.*member) return;
    Check(functions_.layout_set(layout, attribute, &(value.*member), sizeof(value.*member)));
  };
  set(CUBLASLT_MATRIX_LAYOUT_ORDER, &LtMatrixLayout::order);
  set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &LtMatrixLayout::batch_count);
  set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &LtMatrixLayout::batch_stride);
  return layout;
}

CublasLtPreference::CublasLtPreference(const CublasLtFunctions& functions,
                                       const LtMatmulPreference& value)
    : functions_(functions) {
  ok_ = functions_.preference_create(&preference_) == CUBLAS_STATUS_SUCCESS;
  const LtMatmulPreference untouched;
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto member) {
    if (!ok_ || value.*member == untouched.*member) return;
    ok_ = functions_.preference_set(preference_, attribute, &(value.*member),
                                    sizeof(value.*member)) == CUBLAS_STATUS_SUCCESS;
  };
  set(CUBLASLT_MATMUL_PREF_SEARCH_MODE, &LtMatmulPreference::search_mode);
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &LtMatmulPreference::max_workspace);
  set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &LtMatmulPreference::reduction_mask);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &LtMatmulPreference::min_alignment_a);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &LtMatmulPreference::min_alignment_b);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &LtMatmulPreference::min_alignment_c);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &LtMatmulPreference::min_alignment_d);
  set(CUBLASLT_MATMUL_PREF_MAX_WAVES_COUNT, &LtMatmulPreference::max_waves);
  set(CUBLASLT_MATMUL_PREF_IMPL_MASK, &LtMatmulPreference::implementation_mask);
}

CublasLtPreference::~CublasLtPreference() {
  if (preference_ != nullptr) functions_.preference_destroy(preference_);
}

}  // namespace torpor::executor
