#include "server/executor/library/cublaslt_library.h"

#include "base/status_macros.h"
#include "server/executor/gpu/dynamic_library.h"

namespace torpor::executor {

absl::StatusOr<CublasLtFunctions> LoadCublasLt(const std::string& directory) {
  CublasLtFunctions f;
  const Symbol symbols[] = {
      {"cublasLtCreate", f.create},
      {"cublasLtDestroy", f.destroy},
      {"cublasLtMatmul", f.matmul},
      {"cublasLtMatmulAlgoGetHeuristic", f.get_heuristic},
      {"cublasLtMatmulDescCreate", f.matmul_create},
      {"cublasLtMatmulDescDestroy", f.matmul_destroy},
      {"cublasLtMatmulDescSetAttribute", f.matmul_set},
      {"cublasLtMatrixLayoutCreate", f.layout_create},
      {"cublasLtMatrixLayoutDestroy", f.layout_destroy},
      {"cublasLtMatrixLayoutSetAttribute", f.layout_set},
      {"cublasLtMatmulPreferenceCreate", f.preference_create},
      {"cublasLtMatmulPreferenceDestroy", f.preference_destroy},
      {"cublasLtMatmulPreferenceSetAttribute", f.preference_set},
  };
  TORPOR_RETURN_IF_ERROR(LoadSymbols(directory, "libcublasLt.so.13", symbols));
  return f;
}

CublasLtLibrary::~CublasLtLibrary() {
  if (handle_ != nullptr) functions_.destroy(handle_);
}

cublasLtHandle_t CublasLtLibrary::Handle() {
  std::call_once(made_, [this] {
    if (functions_.create == nullptr) return;
    if (functions_.create(&handle_) != CUBLAS_STATUS_SUCCESS) handle_ = nullptr;
  });
  return handle_;
}

}  // namespace torpor::executor
