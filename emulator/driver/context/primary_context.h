#pragma once

#include <cuda.h>

#include <memory>
#include <mutex>

#include "emulator/driver/context/context.h"

namespace torpor::emulator {

// Gives contexts their handles. Implementations are thread-safe.
class ContextRegistry {
 public:
  virtual ~ContextRegistry() = default;
  // Makes a handle for `context` and keeps the context alive until RemoveContext.
  virtual CUcontext AddContext(const std::shared_ptr<Context>& context) = 0;
  // Waits for the context's work, then ends its modules, its memory and its handle. Returns null,
  // and does nothing, for a handle that is not alive.
  virtual std::shared_ptr<Context> RemoveContext(CUcontext context) = 0;
};

// The primary context of a device, with its reference count: made by the first Retain, gone with
// the last Release. Its flags outlive it. Thread-safe.
class PrimaryContext {
 public:
  // `device` and `registry` must outlive the primary context.
  PrimaryContext(DriverDevice& device, ContextRegistry& registry)
      : device_(device), registry_(registry) {}

  // Fails with CUDA_ERROR_OUT_OF_MEMORY, without a change, if the device lacks memory for the
  // context.
  DriverResult<std::shared_ptr<Context>> Retain(CUcontext& handle);
  // Returns CUDA_ERROR_INVALID_CONTEXT if the context is not retained.
  CUresult Release();
  // Ends the context, whatever the reference count.
  void Reset();

  // Sets the flags of the present context and of later ones.
  void SetFlags(unsigned flags);
  unsigned flags() const;
  // Null while there is no context.
  CUcontext handle() const;

 private:
  DriverDevice& device_;
  ContextRegistry& registry_;

  mutable std::mutex mutex_;  // guards the members below
  std::shared_ptr<Context> context_;
  CUcontext handle_ = nullptr;
  unsigned references_ = 0;
  unsigned flags_ = 0;
};

}  // namespace torpor::emulator
