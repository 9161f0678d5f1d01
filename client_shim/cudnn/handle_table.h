#pragma once

#include <cudnn.h>

#include <cstdint>
#include <memory>
#include <shared_mutex>
#include <unordered_map>

#include "client_shim/core/client_core.h"

namespace torpor::shim {

// A handle of this process: nothing but its device and the stream that was set on it. As with
// cuDNN's own, one thread at a time uses one.
struct CudnnHandle {
  ClientCore* core = nullptr;             // of the device that was current when it was created
  cudaStream_t program_stream = nullptr;  // as the program named it
  std::uint64_t stream = 0;               // the session's; 0 is the legacy default stream
};

// The live handles of the process; thread-safe.
class CudnnHandleTable {
 public:
  // Never destroyed: programs destroy handles from destructors of their own globals.
  static CudnnHandleTable& Get();

  // Opens the session if it is not open yet.
  cudnnStatus_t Create(cudnnHandle_t& handle);
  // Null if there is no such handle. The pointer lives until the handle is removed.
  CudnnHandle* Find(cudnnHandle_t handle) const;
  bool Remove(cudnnHandle_t handle);

 private:
  mutable std::shared_mutex mutex_;
  std::unordered_map<cudnnHandle_t, std::unique_ptr<CudnnHandle>> handles_;
};

cudnnStatus_t CudnnStatusOf(cudaError_t error);

}  // namespace torpor::shim
