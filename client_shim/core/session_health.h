#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <functional>
#include <mutex>

#include "client_shim/core/fork_guard.h"
#include "proto/wire/session_window.h"

namespace torpor::shim {

// Whether a session's calls may go ahead: the result of opening the session, and its sticky error.
// Thread-safe.
class SessionHealth {
 public:
  // Runs `open` unless an earlier call has. Returns the error of opening, else the sticky error.
  // Returns cudaErrorInitializationError in a forked child.
  cudaError_t OpenOnce(const std::function<cudaError_t()>& open);

  // Whether OpenOnce has succeeded. Reads after a true result see everything that `open` wrote.
  bool IsOpen() const {
    return is_started_.load(std::memory_order_acquire) && start_error_ == cudaSuccess;
  }

  // The error that every call of the session must return now; cudaSuccess if calls may go ahead.
  // cudaErrorInitializationError before OpenOnce and in a forked child.
  cudaError_t Check() const {
    if (ForkGuard::InChild()) return cudaErrorInitializationError;
    if (!is_started_.load(std::memory_order_acquire)) return cudaErrorInitializationError;
    if (start_error_ != cudaSuccess) return start_error_;
    const cudaError_t known = sticky();
    return known == cudaSuccess && page_ ? ErrorOfPage() : known;
  }

  // The error that every call returns once set; cudaSuccess before.
  cudaError_t sticky() const { return sticky_.load(std::memory_order_relaxed); }
  void SetSticky(cudaError_t error) { sticky_.store(error); }
  // As SetSticky, unless the session has a sticky error.
  void SetStickyIfHealthy(cudaError_t error);

  // Makes Check read the sticky error from the executors' page too, which must outlive this object.
  // Call before OpenOnce returns.
  void WatchPage(const wire::CompletionPage* page) { page_ = page; }

 private:
  // Also makes the page's error the sticky one.
  cudaError_t ErrorOfPage() const {
    const auto error =
        static_cast<cudaError_t>(page_->sticky_error.load(std::memory_order_acquire));
    if (error != cudaSuccess) sticky_.store(error);
    return error;
  }

  std::mutex start_mutex_;
  std::atomic<bool> is_started_{false};
  cudaError_t start_error_ = cudaSuccess;  // constant once is_started_
  const wire::CompletionPage* page_ = nullptr;
  mutable std::atomic<cudaError_t> sticky_{cudaSuccess};
};

}  // namespace torpor::shim
