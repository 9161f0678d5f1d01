#pragma once

#include <cublasLt.h>

#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "client_shim/core/client_core.h"

namespace torpor::shim {

// The live handles of cuBLASLt, each a mere name for a device. Thread-safe.
class CublasLtHandles {
 public:
  // Never destroyed: programs destroy handles from destructors of their own globals.
  static CublasLtHandles& Get();

  // Opens the session unless it is open.
  cublasStatus_t Create(cublasLtHandle_t& handle);
  // False for an unknown handle.
  bool Destroy(cublasLtHandle_t handle);
  // The core of the device that was current when the handle was created; null for an unknown
  // handle. Handles of cuBLAS are handles of cuBLASLt, too.
  ClientCore* FindCore(cublasLtHandle_t handle) const;

 private:
  mutable std::mutex mutex_;
  std::unordered_map<cublasLtHandle_t, ClientCore*> handles_;
};

}  // namespace torpor::shim
