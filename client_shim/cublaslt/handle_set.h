#pragma once

#include <cublasLt.h>

#include <cstdint>
#include <mutex>
#include <unordered_set>

namespace torpor::shim {

// The live handles of cuBLASLt. Nothing but a name is behind one. Thread-safe.
class CublasLtHandles {
 public:
  // Never destroyed: programs destroy handles from destructors of their own globals.
  static CublasLtHandles& Get();

  // Opens the session if it is not open yet.
  cublasStatus_t Create(cublasLtHandle_t& handle);
  bool Destroy(cublasLtHandle_t handle);
  // A handle of cuBLAS is one of cuBLASLt, too.
  bool IsLive(cublasLtHandle_t handle) const;

 private:
  mutable std::mutex mutex_;
  std::unordered_set<cublasLtHandle_t> handles_;
};

}  // namespace torpor::shim
