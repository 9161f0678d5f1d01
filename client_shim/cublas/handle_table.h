#pragma once

#include <cublas_api.h>

#include <compare>
#include <cstdint>
#include <memory>
#include <shared_mutex>
#include <unordered_map>

#include "client_shim/core/client_core.h"

namespace torpor::shim {

// A program's settings on a cuBLAS handle.
struct CublasSettings {
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 sees a null in the operator
  friend auto operator<=>(const CublasSettings&, const CublasSettings&) = default;

  std::uint64_t stream = 0;  // the session's handle; 0 is the legacy default stream
  std::uint64_t workspace = 0;
  std::uint64_t workspace_bytes = 0;  // 0: cuBLAS's own
  std::int32_t math_mode = CUBLAS_DEFAULT_MATH;
  std::int32_t atomics_mode = CUBLAS_ATOMICS_NOT_ALLOWED;
  std::int32_t sm_count_target = 0;
};

// A program's cuBLAS handle. Not thread-safe, like cuBLAS's own handles.
class CublasHandle {
 public:
  CublasHandle(ClientCore& core, std::uint64_t id) : core_(core), id_(id) {}

  // Creates a handle of the session and returns the handle's number in `id`.
  static cudaError_t Create(ClientCore& core, std::uint64_t& id);
  // Destroys the session's handle; SendSettings must not follow.
  cudaError_t Destroy() const;

  std::uint64_t id() const { return id_; }
  // The core of the device that was current when the program created the handle.
  ClientCore& core() const { return core_; }

  // The session's stream for a call of the calling thread.
  std::uint64_t CurrentStream();

  // Sends the settings in `wanted` that the executor does not know yet. Repeated settings of the
  // same value (PyTorch makes some around every call) cost nothing.
  cudaError_t SendSettings();

  CublasSettings wanted;
  cublasPointerMode_t pointer_mode = CUBLAS_POINTER_MODE_HOST;
  cudaStream_t program_stream = nullptr;  // the program's name of the stream

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

  // Adds the session's handle `id` and returns the program's handle.
  cublasHandle_t Add(ClientCore& core, std::uint64_t id);
  // Returns null for an unknown handle. The pointer is valid until the handle is removed.
  CublasHandle* Find(cublasHandle_t handle) const;
  // False for an unknown handle.
  bool Remove(cublasHandle_t handle);

 private:
  mutable std::shared_mutex mutex_;
  std::unordered_map<cublasHandle_t, std::unique_ptr<CublasHandle>> handles_;
};

}  // namespace torpor::shim
