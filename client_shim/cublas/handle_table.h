#pragma once

#include <cublas_api.h>

#include <compare>
#include <cstdint>
#include <memory>
#include <shared_mutex>
#include <unordered_map>

#include "client_shim/core/client_core.h"

namespace torpor::shim {

// What a program has set on a cuBLAS handle.
struct CublasSettings {
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 sees a null in it
  friend auto operator<=>(const CublasSettings&, const CublasSettings&) = default;

  std::uint64_t stream = 0;  // the session's handle; 0 is the legacy default stream
  std::uint64_t workspace = 0;
  std::uint64_t workspace_bytes = 0;  // 0: cuBLAS's own
  std::int32_t math_mode = CUBLAS_DEFAULT_MATH;
  std::int32_t atomics_mode = CUBLAS_ATOMICS_NOT_ALLOWED;
  std::int32_t sm_count_target = 0;
};

// A handle of this process. As with cuBLAS's own, one thread at a time uses one.
class CublasHandle {
 public:
  CublasHandle(ClientCore& core, std::uint64_t id) : core_(core), id_(id) {}

  // Makes one of the session.
  static cudaError_t Create(ClientCore& core, std::uint64_t& id);
  // Sends that the session's is gone; the settings are not to be sent any more.
  cudaError_t Destroy() const;

  std::uint64_t id() const { return id_; }
  // Of the device that was current when it was created.
  ClientCore& core() const { return core_; }

  // The stream of a call that is made now.
  std::uint64_t CurrentStream();

  // Sends those of `wanted` that the executor does not know yet, so that what is set again and
  // again to the same value (PyTorch does so around every call) costs nothing.
  cudaError_t SendSettings();

  CublasSettings wanted;
  cublasPointerMode_t pointer_mode = CUBLAS_POINTER_MODE_HOST;
  cudaStream_t program_stream = nullptr;  // as the program named it

 private:
  ClientCore& core_;
  const std::uint64_t id_;
  CublasSettings sent_;
};

// The live handles of the process; thread-safe.
class CublasHandleTable {
 public:
  // Never destroyed: programs destroy handles from destructors of their own globals.
  static CublasHandleTable& Get();

  cublasHandle_t Add(ClientCore& core, std::uint64_t id);
  // Null if there is no such handle. The pointer lives until the handle is removed.
  CublasHandle* Find(cublasHandle_t handle) const;
  bool Remove(cublasHandle_t handle);

 private:
  mutable std::shared_mutex mutex_;
  std::unordered_map<cublasHandle_t, std::unique_ptr<CublasHandle>> handles_;
};

}  // namespace torpor::shim
