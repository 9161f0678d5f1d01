#include "server/executor/library/cublas_calls.h"

#include "absl/strings/str_cat.h"

namespace torpor::executor {

using cuda_api::CallFailed;
using cuda_api::CallStatus;

namespace {

constexpr std::size_t kMaxHandles = 1024;

// The bits of all modes; one mode is a flag on top of another.
constexpr int kAllMathModes = CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION | 0xf;

}  // namespace

CublasCalls::Handle* CublasCalls::Find(std::uint64_t id) {
  const auto found = handles_.find(id);
  return found == handles_.end() ? nullptr : &found->second;
}

void CublasCalls::ReleaseHandles() {
  for (auto& [id, handle] : handles_) {
    if (handle.real == nullptr) continue;
    pool_.Return(handle.real);
    handle.real = nullptr;
    handle.configured = false;
    handle.real_mode.reset();
  }
}

CallStatus CublasCalls::CublasCreate(const wire::CublasCreate& command) {
  if (functions().cublasCreate_v2 == nullptr) {
    return CallFailed(CUBLAS_STATUS_NOT_INITIALIZED, "the executor found no libcublas.so.13");
  }
  if (handles_.size() >= kMaxHandles) {
    return CallFailed(CUBLAS_STATUS_ALLOC_FAILED, "the session has too many cuBLAS handles");
  }
  handles_.try_emplace(command.handle);
  return {};
}

CallStatus CublasCalls::CublasDestroy(const wire::CublasDestroy& command) {
  Handle* handle = Find(command.handle);
  if (handle == nullptr) {
    return CallFailed(CUBLAS_STATUS_NOT_INITIALIZED,
                      absl::StrCat("the session has no cuBLAS handle ", command.handle));
  }
  if (handle->real != nullptr) {
    // The next user orders work by other streams, so the session's work must be done first.
    // cublasDestroy waits for the device too.
    if (streams_.Synchronize() != CUDA_SUCCESS) {
      return CallFailed(CUBLAS_STATUS_INTERNAL_ERROR, "the work of a cuBLAS handle failed");
    }
    pool_.Return(handle->real);
  }
  handles_.erase(command.handle);
  return {};
}

template <typename Change>
CallStatus CublasCalls::Set(std::uint64_t id, Change change) {
  Handle* handle = Find(id);
  if (handle == nullptr) {
    return CallFailed(CUBLAS_STATUS_NOT_INITIALIZED,
                      absl::StrCat("the session has no cuBLAS handle ", id));
  }
  change(*handle);
  handle->configured = false;
  return {};
}

CallStatus CublasCalls::CublasSetStream(const wire::CublasSetStream& command) {
  return Set(command.handle, [&](Handle& handle) {
    handle.stream = command.stream;
    // Like cuBLAS, go back to the library's own workspace.
    handle.workspace = 0;
    handle.workspace_bytes = 0;
  });
}

CallStatus CublasCalls::CublasSetWorkspace(const wire::CublasSetWorkspace& command) {
  // Ownership of the memory is checked at each use: the journal may hold a setting that outlived
  // the block.
  return Set(command.handle, [&](Handle& handle) {
    handle.workspace = command.address;
    handle.workspace_bytes = command.bytes;
  });
}

CallStatus CublasCalls::CublasSetMathMode(const wire::CublasSetMathMode& command) {
  // cuBLAS refuses unknown modes, but may only be given an enumerator's value.
  if (command.mode < 0 || command.mode > kAllMathModes) {
    return CallFailed(CUBLAS_STATUS_INVALID_VALUE, "no such math mode");
  }
  return Set(command.handle, [&](Handle& handle) { handle.math_mode = command.mode; });
}

CallStatus CublasCalls::CublasSetAtomicsMode(const wire::CublasSetAtomicsMode& command) {
  if (command.mode != CUBLAS_ATOMICS_NOT_ALLOWED && command.mode != CUBLAS_ATOMICS_ALLOWED) {
    return CallFailed(CUBLAS_STATUS_INVALID_VALUE, "no such atomics mode");
  }
  return Set(command.handle, [&](Handle& handle) { handle.atomics_mode = command.mode; });
}

CallStatus CublasCalls::CublasSetSmCountTarget(const wire::CublasSetSmCountTarget& command) {
  return Set(command.handle, [&](Handle& handle) { handle.sm_count = command.count; });
}

cublasHandle_t CublasCalls::BeginCall(std::uint64_t id, cublasPointerMode_t mode) {
  Handle* handle = Find(id);
  CUstream stream = nullptr;
  if (handle == nullptr) return nullptr;
  const CUdeviceptr workspace = OwnWorkspace(*handle);
  if (streams_.Use(handle->stream, stream) != CUDA_SUCCESS) return nullptr;
  if (handle->real == nullptr) handle->real = pool_.Take();
  if (handle->real == nullptr) return nullptr;
  if (!handle->configured || handle->real_stream != stream || handle->real_workspace != workspace) {
    if (!Configure(*handle, stream, workspace)) return nullptr;
  }
  if (handle->real_mode != mode) {
    if (functions().cublasSetPointerMode_v2(handle->real, mode) != CUBLAS_STATUS_SUCCESS) {
      return nullptr;
    }
    handle->real_mode = mode;
  }
  return handle->real;
}

CUdeviceptr CublasCalls::OwnWorkspace(const Handle& handle) {
  if (handle.workspace_bytes == 0 || functions().cublasSetWorkspace_v2 == nullptr) return 0;
  return memory_.Use(handle.workspace, handle.workspace_bytes, cuda_api::Access::kWrite);
}

bool CublasCalls::Configure(Handle& handle, CUstream stream, CUdeviceptr workspace) {
  const cuda_api::CublasFunctions& cublas = functions();
  const auto done = [](cublasStatus_t status) { return status == CUBLAS_STATUS_SUCCESS; };
  // Setting the stream also restores cuBLAS's own workspace.
  bool ok = done(cublas.cublasSetStream_v2(handle.real, stream));
  if (workspace != 0) {
    ok = ok && done(cublas.cublasSetWorkspace_v2(handle.real, reinterpret_cast<void*>(workspace),
                                                 handle.workspace_bytes));
  }
  if (cublas.cublasSetMathMode != nullptr) {
    ok = ok &&
         done(cublas.cublasSetMathMode(handle.real, static_cast<cublasMath_t>(handle.math_mode)));
  }
  if (cublas.cublasSetAtomicsMode != nullptr) {
    ok = ok && done(cublas.cublasSetAtomicsMode(
                   handle.real, static_cast<cublasAtomicsMode_t>(handle.atomics_mode)));
  }
  if (cublas.cublasSetSmCountTarget != nullptr) {
    ok = ok && done(cublas.cublasSetSmCountTarget(handle.real, handle.sm_count));
  }
  handle.configured = ok;
  handle.real_stream = stream;
  handle.real_workspace = workspace;
  return ok;
}

}  // namespace torpor::executor
