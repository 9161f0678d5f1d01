#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/cuda_api/cublas_functions.h"

namespace torpor::executor {

// Opens libcublas.so.13 in `directory` (empty: where the system's loader finds it) for the rest
// of the process's life. Functions that the library lacks stay null. NotFound if there is none.
absl::StatusOr<cuda_api::CublasFunctions> LoadCublas(const std::string& directory);

// cuBLAS handles that no session uses at the moment. A handle costs tens of milliseconds and
// megabytes of device memory, so sessions have one only while they run. Thread-safe.
class CublasPool {
 public:
  // Empty functions: there is no cuBLAS, and every call says so.
  explicit CublasPool(const cuda_api::CublasFunctions& functions) : functions_(functions) {}
  ~CublasPool();
  CublasPool(const CublasPool&) = delete;
  CublasPool& operator=(const CublasPool&) = delete;

  const cuda_api::CublasFunctions& functions() const { return functions_; }

  // On the calling thread's context, with whatever settings it had; null if cuBLAS gives none.
  cublasHandle_t Take();
  // Nothing runs on it any more.
  void Return(cublasHandle_t handle);

 private:
  const cuda_api::CublasFunctions functions_;
  std::mutex mutex_;
  std::vector<cublasHandle_t> free_;  // guarded by mutex_
};

}  // namespace torpor::executor
