#include "server/executor/cublas_library.h"

#include <dlfcn.h>

#include "base/status_macros.h"
#include "server/executor/dynamic_library.h"

namespace torpor::executor {

absl::StatusOr<cuda_api::CublasFunctions> LoadCublas(const std::string& directory) {
  TORPOR_ASSIGN_OR_RETURN(void* library, OpenLibrary(directory, "libcublas.so.13"));
  return cuda_api::LoadCublasFunctions(
      [library](const char* symbol) { return dlsym(library, symbol); });
}

CublasPool::~CublasPool() {
  for (const cublasHandle_t handle : free_) functions_.cublasDestroy_v2(handle);
}

cublasHandle_t CublasPool::Take() {
  {
    std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      const cublasHandle_t handle = free_.back();
      free_.pop_back();
      return handle;
    }
  }
  cublasHandle_t handle = nullptr;
  if (functions_.cublasCreate_v2 == nullptr ||
      functions_.cublasCreate_v2(&handle) != CUBLAS_STATUS_SUCCESS) {
    return nullptr;
  }
  return handle;
}

void CublasPool::Return(cublasHandle_t handle) {
  std::lock_guard lock(mutex_);
  free_.push_back(handle);
}

}  // namespace torpor::executor
