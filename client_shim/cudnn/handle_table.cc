#include "client_shim/cudnn/handle_table.h"

#include <mutex>

namespace torpor::shim {

CudnnHandleTable& CudnnHandleTable::Get() {
  static auto* const table = new CudnnHandleTable;
  return *table;
}

cudnnStatus_t CudnnHandleTable::Create(cudnnHandle_t& handle) {
  ClientCore& core = *torpor_client_core();
  if (const cudaError_t error = core.Start()) return CudnnStatusOf(error);
  handle = reinterpret_cast<cudnnHandle_t>(core.MintHandle(HandleKind::kCudnn));
  const std::unique_lock lock(mutex_);
  handles_.emplace(handle, std::make_unique<CudnnHandle>(CudnnHandle{&core}));
  return CUDNN_STATUS_SUCCESS;
}

CudnnHandle* CudnnHandleTable::Find(cudnnHandle_t handle) const {
  const std::shared_lock lock(mutex_);
  const auto found = handles_.find(handle);
  return found == handles_.end() ? nullptr : found->second.get();
}

bool CudnnHandleTable::Remove(cudnnHandle_t handle) {
  const std::unique_lock lock(mutex_);
  return handles_.erase(handle) == 1;
}

cudnnStatus_t CudnnStatusOf(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return CUDNN_STATUS_SUCCESS;
    case cudaErrorMemoryAllocation:
      return CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
    case cudaErrorNoDevice:
    case cudaErrorInitializationError:
    case cudaErrorInsufficientDriver:
      return CUDNN_STATUS_NOT_INITIALIZED;
    case cudaErrorNotSupported:
      return CUDNN_STATUS_NOT_SUPPORTED;
    default:
      return CUDNN_STATUS_EXECUTION_FAILED;
  }
}

}  // namespace torpor::shim
