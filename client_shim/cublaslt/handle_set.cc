#include "client_shim/cublaslt/handle_set.h"

#include "client_shim/core/client_core.h"
#include "client_shim/cublas/status.h"

namespace torpor::shim {

CublasLtHandles& CublasLtHandles::Get() {
  static auto* const handles = new CublasLtHandles;
  return *handles;
}

cublasStatus_t CublasLtHandles::Create(cublasLtHandle_t& handle) {
  ClientCore& core = *torpor_client_core();
  if (const cudaError_t error = core.Start()) return CublasStatusOf(error);
  handle = reinterpret_cast<cublasLtHandle_t>(core.MintHandle(HandleKind::kCublasLt));
  const std::lock_guard lock(mutex_);
  handles_.insert(handle);
  return CUBLAS_STATUS_SUCCESS;
}

bool CublasLtHandles::Destroy(cublasLtHandle_t handle) {
  const std::lock_guard lock(mutex_);
  return handles_.erase(handle) == 1;
}

bool CublasLtHandles::IsLive(cublasLtHandle_t handle) const {
  const auto id = reinterpret_cast<std::uint64_t>(handle);
  if (KindOf(id) == HandleKind::kCublas) return torpor_client_core()->IsLive(id);
  const std::lock_guard lock(mutex_);
  return handles_.contains(handle);
}

}  // namespace torpor::shim
