#pragma once

#include <cublasLt.h>

#include <mutex>
#include <string>

#include "absl/status/statusor.h"

namespace torpor::executor {

// cuBLASLt's functions, found at run time; complete or empty.
struct CublasLtFunctions {
  decltype(&::cublasLtCreate) create = nullptr;
  decltype(&::cublasLtDestroy) destroy = nullptr;
  decltype(&::cublasLtMatmul) matmul = nullptr;
  decltype(&::cublasLtMatmulAlgoGetHeuristic) get_heuristic = nullptr;
  decltype(&::cublasLtMatmulDescCreate) matmul_create = nullptr;
  decltype(&::cublasLtMatmulDescDestroy) matmul_destroy = nullptr;
  decltype(&::cublasLtMatmulDescSetAttribute) matmul_set = nullptr;
  decltype(&::cublasLtMatrixLayoutCreate) layout_create = nullptr;
  decltype(&::cublasLtMatrixLayoutDestroy) layout_destroy = nullptr;
  decltype(&::cublasLtMatrixLayoutSetAttribute) layout_set = nullptr;
  decltype(&::cublasLtMatmulPreferenceCreate) preference_create = nullptr;
  decltype(&::cublasLtMatmulPreferenceDestroy) preference_destroy = nullptr;
  decltype(&::cublasLtMatmulPreferenceSetAttribute) preference_set = nullptr;
};

// Opens libcublasLt.so.13 in `directory` (empty: the system's search path) for the rest of the
// process's life. NotFound if the library or a function is missing.
absl::StatusOr<CublasLtFunctions> LoadCublasLt(const std::string& directory);

// The library with one handle, which all sessions share and which never gets settings. Thread-safe.
class CublasLtLibrary {
 public:
  // Empty functions mean a missing library.
  explicit CublasLtLibrary(const CublasLtFunctions& functions) : functions_(functions) {}
  ~CublasLtLibrary();
  CublasLtLibrary(const CublasLtLibrary&) = delete;
  CublasLtLibrary& operator=(const CublasLtLibrary&) = delete;

  const CublasLtFunctions& functions() const { return functions_; }

  // Returns the handle, created by the first caller on the calling thread's context; null if the
  // library is missing or creates no handle.
  cublasLtHandle_t Handle();

 private:
  const CublasLtFunctions functions_;
  std::once_flag made_;
  cublasLtHandle_t handle_ = nullptr;
};

}  // namespace torpor::executor
