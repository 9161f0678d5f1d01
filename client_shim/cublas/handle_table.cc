#include "client_shim/cublas/handle_table.h"

#include <mutex>
#include <vector>

#include "proto/cuda_api/cublas_commands.h"

namespace torpor::shim {
namespace {

template <typename Setting>
cudaError_t Configure(ClientCore& core, std::uint64_t handle, Setting setting) {
  setting.handle = handle;
  std::vector<std::uint8_t> fields;
  wire::Writer{fields}(setting);
  return core.Configure(handle, {Setting::kCallId, fields});
}

}  // namespace

cudaError_t CublasHandle::Create(ClientCore& core, std::uint64_t& id) {
  id = core.MintHandle(HandleKind::kCublas);
  return core.Create(id, {wire::CublasCreate::kCallId, wire::Encoded(wire::CublasCreate{id})});
}

cudaError_t CublasHandle::Destroy() const {
  return core_.Destroy(id_,
                       {wire::CublasDestroy::kCallId, wire::Encoded(wire::CublasDestroy{id_})});
}

std::uint64_t CublasHandle::CurrentStream() {
  // The calling thread may differ from the thread that set the stream.
  if (program_stream == cudaStreamPerThread) wanted.stream = core_.PerThreadStream();
  return wanted.stream;
}

cudaError_t CublasHandle::SendSettings() {
  CurrentStream();
  if (wanted.stream != sent_.stream) {
    if (const cudaError_t error =
            Configure(core_, id_, wire::CublasSetStream{.handle = 0, .stream = wanted.stream}))
      return error;
    sent_.stream = wanted.stream;
    // cuBLAS returns to its default workspace when the stream changes.
    sent_.workspace = sent_.workspace_bytes = 0;
  }
  if (wanted.workspace != sent_.workspace || wanted.workspace_bytes != sent_.workspace_bytes) {
    if (const cudaError_t error = Configure(
            core_, id_,
            wire::CublasSetWorkspace{
                .handle = 0, .address = wanted.workspace, .bytes = wanted.workspace_bytes}))
      return error;
    sent_.workspace = wanted.workspace;
    sent_.workspace_bytes = wanted.workspace_bytes;
  }
  if (wanted.math_mode != sent_.math_mode) {
    if (const cudaError_t error =
            Configure(core_, id_, wire::CublasSetMathMode{.handle = 0, .mode = wanted.math_mode}))
      return error;
    sent_.math_mode = wanted.math_mode;
  }
  if (wanted.atomics_mode != sent_.atomics_mode) {
    if (const cudaError_t error = Configure(
            core_, id_, wire::CublasSetAtomicsMode{.handle = 0, .mode = wanted.atomics_mode}))
      return error;
    sent_.atomics_mode = wanted.atomics_mode;
  }
  if (wanted.sm_count_target != sent_.sm_count_target) {
    if (const cudaError_t error = Configure(
            core_, id_, wire::CublasSetSmCountTarget{.handle = 0, .count = wanted.sm_count_target}))
      return error;
    sent_.sm_count_target = wanted.sm_count_target;
  }
  return cudaSuccess;
}

CublasHandleTable& CublasHandleTable::Get() {
  static auto* const table = new CublasHandleTable;
  return *table;
}

cublasHandle_t CublasHandleTable::Add(ClientCore& core, std::uint64_t id) {
  const auto handle = reinterpret_cast<cublasHandle_t>(id);
  const std::unique_lock lock(mutex_);
  handles_.emplace(handle, std::make_unique<CublasHandle>(core, id));
  return handle;
}

CublasHandle* CublasHandleTable::Find(cublasHandle_t handle) const {
  const std::shared_lock lock(mutex_);
  const auto found = handles_.find(handle);
  return found == handles_.end() ? nullptr : found->second.get();
}

bool CublasHandleTable::Remove(cublasHandle_t handle) {
  const std::unique_lock lock(mutex_);
  return handles_.erase(handle) == 1;
}

}  // namespace torpor::shim
