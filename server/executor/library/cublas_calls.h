#pragma once

#include <cstdint>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "proto/cuda_api/cublas_dispatch.h"
#include "server/executor/library/cublas_library.h"
#include "server/executor/runtime/stream_set.h"
#include "server/executor/session_memory/session_device_memory.h"

namespace torpor::executor {

// Executes one session's cuBLAS calls. Keeps the settings of the client's handles, and takes a real
// handle from the pool for each handle in use. The individual computations are generated. Not
// thread-safe; call with the device current.
class CublasCalls final : public cuda_api::CublasHandler {
 public:
  // `pool`, `streams` and `memory` must outlive the object.
  CublasCalls(CublasPool& pool, StreamSet& streams, SessionMemory& memory)
      : pool_(pool), streams_(streams), memory_(memory), device_memory_(memory) {}
  // All of the session's work must be done.
  ~CublasCalls() override { ReleaseHandles(); }

  // Gives the real handles back and keeps the settings. The session's work must be done.
  void ReleaseHandles();

  // Handlers of the client's calls. Settings reach cuBLAS only with the next computation.
  // NOT_INITIALIZED for an unknown handle.
  cuda_api::CallStatus CublasCreate(const wire::CublasCreate& command) override;
  cuda_api::CallStatus CublasDestroy(const wire::CublasDestroy& command) override;
  cuda_api::CallStatus CublasSetStream(const wire::CublasSetStream& command) override;
  cuda_api::CallStatus CublasSetWorkspace(const wire::CublasSetWorkspace& command) override;
  cuda_api::CallStatus CublasSetMathMode(const wire::CublasSetMathMode& command) override;
  cuda_api::CallStatus CublasSetAtomicsMode(const wire::CublasSetAtomicsMode& command) override;
  cuda_api::CallStatus CublasSetSmCountTarget(const wire::CublasSetSmCountTarget& command) override;

  const cuda_api::CublasFunctions& functions() const override { return pool_.functions(); }
  void* Resolve(std::uint64_t address, std::uint64_t bytes, cuda_api::Access access) override {
    return device_memory_.Resolve(address, bytes, access);
  }
  bool is_translating() const override { return device_memory_.is_translating(); }
  // Prepares the real handle of `handle` for one computation: stream, workspace, settings and
  // pointer mode. Returns null if the handle or the handle's stream is unknown, or if cuBLAS
  // refuses a setting.
  cublasHandle_t BeginCall(std::uint64_t handle, cublasPointerMode_t mode) override;

 private:
  // A client's handle: settings, then the state of the real handle.
  struct Handle {
    std::uint64_t stream = 0;
    std::uint64_t workspace = 0;
    Bytes workspace_bytes = 0;
    int math_mode = CUBLAS_DEFAULT_MATH;
    int atomics_mode = CUBLAS_ATOMICS_NOT_ALLOWED;
    int sm_count = 0;
    // State of the real handle, null between leases.
    cublasHandle_t real = nullptr;
    bool configured = false;
    CUstream real_stream = nullptr;
    CUdeviceptr real_workspace = 0;  // the client's; 0: cuBLAS's own
    std::optional<cublasPointerMode_t> real_mode;
  };

  // Returns null for an unknown handle.
  Handle* Find(std::uint64_t id);
  // Returns the client's workspace, or 0 if none is set or the workspace is not the client's memory
  // any more: cuBLAS would write into memory with a new use.
  CUdeviceptr OwnWorkspace(const Handle& handle);
  // Gives the real handle all settings; false if cuBLAS refuses a setting.
  bool Configure(Handle& handle, CUstream stream, CUdeviceptr workspace);
  // Changes a setting of a handle and marks the real handle as not configured.
  template <typename Change>
  cuda_api::CallStatus Set(std::uint64_t id, Change change);

  CublasPool& pool_;
  StreamSet& streams_;
  SessionMemory& memory_;
  SessionDeviceMemory device_memory_;
  absl::flat_hash_map<std::uint64_t, Handle> handles_;
};

}  // namespace torpor::executor
