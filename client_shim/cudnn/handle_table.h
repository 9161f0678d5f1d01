#pragma once

#include <cudnn.h>

#include <cstdint>
#include <memory>
#include <shared_mutex>
#include <unordered_map>

#include "client_shim/core/client_core.h"

namespace torpor::shim {

// A program's cuDNN handle: a device and a stream. Not thread-safe, like cuDNN's own handles.
struct CudnnHandle {
  ClientCore* core = nullptr;             // of the device that was current at creation
  cudaStream_t program_stream = nullptr;  // the program's name of the stream
  std::uint64_t stream = 0;               // the session's handle; 0 is the legacy default stream
};

// The live handles of the process; thread-safe.
class CudnnHandleTable {
 public:
  // Never destroyed: programs destroy handles from destructors of their own globals.
  static CudnnHandleTable& Get();

  // Opens the session unless it is open.
  cudnnStatus_t Create(cudnnHandle_t& handle);
  // Returns null for an unknown handle. The pointer is valid until the handle is removed.
  CudnnHandle* Find(cudnnHandle_t handle) const;
  // False for an unknown handle.
  bool Remove(cudnnHandle_t handle);

 private:
  mutable std::shared_mutex mutex_;
  std::unordered_map<cudnnHandle_t, std::unique_ptr<CudnnHandle>> handles_;
};

// The status for an error of the transport.
cudnnStatus_t CudnnStatusOf(cudaError_t error);

}  // namespace torpor::shim
