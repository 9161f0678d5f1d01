#include "client_shim/core/call_tracer.h"
#include "client_shim/cublas/handle_table.h"
#include "client_shim/cublas/overrides.h"
#include "client_shim/cublas/status.h"
#include "client_shim/stream_work.h"

// Creates, destroys and sets up handles. Settings stay in the client until a call needs them.
namespace torpor::shim {
namespace {

template <typename Body>
cublasStatus_t WithHandle(cublasHandle_t handle, Body body,
                          const char* entry = __builtin_FUNCTION()) {
  const TracedCall traced(entry);
  CublasHandle* const found = CublasHandleTable::Get().Find(handle);
  return found ? body(*found) : CUBLAS_STATUS_NOT_INITIALIZED;
}

template <typename T, typename Body>
cublasStatus_t ReadHandle(cublasHandle_t handle, T* value, Body body,
                          const char* entry = __builtin_FUNCTION()) {
  return WithHandle(
      handle,
      [&](const CublasHandle& found) {
        if (!value) return CUBLAS_STATUS_INVALID_VALUE;
        *value = body(found);
        return CUBLAS_STATUS_SUCCESS;
      },
      entry);
}

cublasStatus_t CreateHandle(cublasHandle_t* handle) {
  ClientCore& core = *torpor_client_core();
  if (const cudaError_t error = core.Start()) return CublasStatusOf(error);
  std::uint64_t id = 0;
  if (const cudaError_t error = CublasHandle::Create(core, id)) return CublasStatusOf(error);
  *handle = CublasHandleTable::Get().Add(core, id);
  return CUBLAS_STATUS_SUCCESS;
}

constexpr std::int32_t kMathModes = CUBLAS_TENSOR_OP_MATH | CUBLAS_PEDANTIC_MATH |
                                    CUBLAS_TF32_TENSOR_OP_MATH | CUBLAS_FP32_EMULATED_BF16X9_MATH |
                                    CUBLAS_FP64_EMULATED_FIXEDPOINT_MATH |
                                    CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
constexpr std::uint64_t kWorkspaceAlignment = 256;

}  // namespace
}  // namespace torpor::shim

using torpor::shim::CublasHandle;
using torpor::shim::Guarded;
using torpor::shim::ReadHandle;
using torpor::shim::WithHandle;

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  if (!handle) return CUBLAS_STATUS_INVALID_VALUE;
  return Guarded([&] { return torpor::shim::CreateHandle(handle); });
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  return WithHandle(handle, [&](CublasHandle& found) {
    const cublasStatus_t status =
        Guarded([&] { return torpor::shim::CublasStatusOf(found.Destroy()); });
    torpor::shim::CublasHandleTable::Get().Remove(handle);
    return status;
  });
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t streamId) {
  return WithHandle(handle, [&](CublasHandle& found) {
    std::uint64_t stream = 0;
    if (!torpor::shim::ResolveStream(found.core(), streamId, stream))
      return CUBLAS_STATUS_INVALID_VALUE;
    found.program_stream = streamId;
    found.wanted.stream = stream;
    found.wanted.workspace = found.wanted.workspace_bytes = 0;  // as cuBLAS documents
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t* streamId) {
  return ReadHandle(handle, streamId, [](const CublasHandle& h) { return h.program_stream; });
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace,
                                     size_t workspaceSizeInBytes) {
  return WithHandle(handle, [&](CublasHandle& found) {
    const auto address = reinterpret_cast<std::uint64_t>(workspace);
    if (address % torpor::shim::kWorkspaceAlignment != 0) return CUBLAS_STATUS_INVALID_VALUE;
    found.wanted.workspace = workspaceSizeInBytes ? address : 0;
    found.wanted.workspace_bytes = workspace ? workspaceSizeInBytes : 0;
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode) {
  return WithHandle(handle, [&](CublasHandle& found) {
    if (mode != CUBLAS_POINTER_MODE_HOST && mode != CUBLAS_POINTER_MODE_DEVICE)
      return CUBLAS_STATUS_INVALID_VALUE;
    found.pointer_mode = mode;
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t* mode) {
  return ReadHandle(handle, mode, [](const CublasHandle& h) { return h.pointer_mode; });
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  return WithHandle(handle, [&](CublasHandle& found) {
    const std::int32_t bits = mode;
    if (bits < 0 || (bits & ~torpor::shim::kMathModes) != 0) return CUBLAS_STATUS_INVALID_VALUE;
    found.wanted.math_mode = bits;
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t* mode) {
  return ReadHandle(handle, mode, [](const CublasHandle& h) {
    return static_cast<cublasMath_t>(h.wanted.math_mode);
  });
}

cublasStatus_t cublasSetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t mode) {
  return WithHandle(handle, [&](CublasHandle& found) {
    if (mode != CUBLAS_ATOMICS_ALLOWED && mode != CUBLAS_ATOMICS_NOT_ALLOWED)
      return CUBLAS_STATUS_INVALID_VALUE;
    found.wanted.atomics_mode = mode;
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasGetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t* mode) {
  return ReadHandle(handle, mode, [](const CublasHandle& h) {
    return static_cast<cublasAtomicsMode_t>(h.wanted.atomics_mode);
  });
}

cublasStatus_t cublasSetSmCountTarget(cublasHandle_t handle, int smCountTarget) {
  return WithHandle(handle, [&](CublasHandle& found) {
    if (smCountTarget < 0) return CUBLAS_STATUS_INVALID_VALUE;
    found.wanted.sm_count_target = smCountTarget;
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasGetSmCountTarget(cublasHandle_t handle, int* smCountTarget) {
  return ReadHandle(handle, smCountTarget,
                    [](const CublasHandle& h) { return h.wanted.sm_count_target; });
}
