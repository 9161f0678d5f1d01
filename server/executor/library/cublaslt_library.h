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

// Opens libcublasLt.so.13 in `directory` (empty: where the system's loader finds it) for the rest
// of the process's life. NotFound if the library or a function is missing.
absl::StatusOr<CublasLtFunctions> LoadCublasLt(const std::string& directory);

// The library, and the handle that all sessions share, without settings. Thread-safe.
class CublasLtLibrary {
 public:
  // Empty functions mean that there is no cuBLASLt.
  explicit CublasLtLibrary(const CublasLtFunctions& functions) : functions_(functions) {}
  ~CublasLtLibrary();
  CublasLtLibrary(const CublasLtLibrary&) = delete;
  CublasLtLibrary& operator=(const CublasLtLibrary&) = delete;

  const CublasLtFunctions& functions() const { return functions_; }

  // Returns the handle, made by the first caller on that thread's context; null without a library.
  cublasLtHandle_t Handle();

 private:
  const CublasLtFunctions functions_;
  std::once_flag made_;
  cublasLtHandle_t handle_ = nullptr;
};

}  // namespace torpor::executor
