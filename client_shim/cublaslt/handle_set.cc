#include "client_shim/cublaslt/handle_set.h"

#include "client_shim/cublas/status.h"

namespace torpor::shim {
namespace {

// The core that created the handle of cuBLAS; null if no open core did.
ClientCore* CoreWith(std::uint64_t cublas_handle) {
  ClientCore& first = *torpor_client_core()->OfDevice(0);
  if (!first.IsOpen()) return nullptr;
  for (int device = 0; ClientCore* const core = first.OfDevice(device); ++device)
    if (core->IsLive(cublas_handle)) return core;
  return nullptr;
}

}  // namespace

CublasLtHandles& CublasLtHandles::Get() {
  static auto* const handles = new CublasLtHandles;
  return *handles;
}

cublasStatus_t CublasLtHandles::Create(cublasLtHandle_t& handle) {
  ClientCore& core = *torpor_client_core();
  if (const cudaError_t error = core.Start()) return CublasStatusOf(error);
  handle = reinterpret_cast<cublasLtHandle_t>(core.MintHandle(HandleKind::kCublasLt));
  const std::lock_guard lock(mutex_);
  handles_.emplace(handle, &core);
  return CUBLAS_STATUS_SUCCESS;
}

bool CublasLtHandles::Destroy(cublasLtHandle_t handle) {
  const std::lock_guard lock(mutex_);
  return handles_.erase(handle) == 1;
}

ClientCore* CublasLtHandles::FindCore(cublasLtHandle_t handle) const {
  const auto id = reinterpret_cast<std::uint64_t>(handle);
  if (KindOf(id) == HandleKind::kCublas) return CoreWith(id);
  const std::lock_guard lock(mutex_);
  const auto found = handles_.find(handle);
  return found == handles_.end() ? nullptr : found->second;
}

}  // namespace torpor::shim
