#include "client_shim/core/session_health.h"

namespace torpor::shim {

cudaError_t SessionHealth::OpenOnce(const std::function<cudaError_t()>& open) {
  if (ForkGuard::InChild()) return cudaErrorInitializationError;
  if (!is_started_.load(std::memory_order_acquire)) {
    std::lock_guard lock(start_mutex_);
    if (!is_started_.load(std::memory_order_relaxed)) {
      start_error_ = open();
      is_started_.store(true, std::memory_order_release);
    }
  }
  return start_error_ != cudaSuccess ? start_error_ : sticky();
}

void SessionHealth::SetStickyIfHealthy(cudaError_t error) {
  cudaError_t none = cudaSuccess;
  sticky_.compare_exchange_strong(none, error);
}

}  // namespace torpor::shim
