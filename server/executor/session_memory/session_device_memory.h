#pragma once

#include "proto/cuda_api/call_memory.h"
#include "server/executor/session_memory/session_memory.h"

namespace torpor::executor {

// Resolves addresses in a session's memory for calls of libraries. Not thread-safe.
class SessionDeviceMemory final : public cuda_api::CallMemory {
 public:
  // `memory` must outlive the object.
  explicit SessionDeviceMemory(SessionMemory& memory) : memory_(memory) {}

  void* Resolve(std::uint64_t address, std::uint64_t bytes, cuda_api::Access access) override {
    const CUdeviceptr found = memory_.Use(address, bytes, access);
    if (found != 0 && access != cuda_api::Access::kRead) memory_.image().MarkDirty();
    return reinterpret_cast<void*>(found);
  }

  bool is_translating() const override { return memory_.is_translating(); }

 private:
  SessionMemory& memory_;
};

}  // namespace torpor::executor
