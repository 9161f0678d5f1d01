#pragma once

#include <cuda.h>

#include <cstdint>
#include <optional>
#include <span>

#include "base/units.h"
#include "proto/cuda_api/call_memory.h"
#include "proto/cuda_api/cudart_commands.h"
#include "server/executor/module/session_modules.h"
#include "server/executor/session_memory/session_memory.h"

namespace torpor::executor {

// Checks the ranges of memory that a command names against the session's own memory and finds them
// on this GPU. Addresses and lengths are the client's words and may be any numbers. Not
// thread-safe; call on the thread that executes the session's calls.
class CommandMemory {
 public:
  // One side of a copy of two or three dimensions, for the driver.
  struct Side {
    CUmemorytype type = CU_MEMORYTYPE_DEVICE;
    CUdeviceptr device = 0;  // of CU_MEMORYTYPE_DEVICE
    void* host = nullptr;    // of CU_MEMORYTYPE_HOST
  };

  // Both must outlive this.
  CommandMemory(SessionMemory& memory, const SessionModules& modules)
      : memory_(memory), modules_(modules) {}

  // Returns where [address, address + bytes) lies on this GPU: in device or pinned memory, or in a
  // variable of the session's modules. Returns 0 if the range is not the session's. The work that
  // is enqueued next waits for those bytes (SessionMemory::Use).
  CUdeviceptr Device(std::uint64_t address, Bytes bytes, cuda_api::Access access) const;

  // Returns a command's payload of `bytes`: `data` itself, or `offset` in the window or the host
  // arena. Returns null if the payload is not inside.
  const std::uint8_t* Payload(wire::Payload kind, std::uint64_t offset, Bytes bytes,
                              std::span<const std::uint8_t> data) const;

  // Returns the side whose linear memory covers `extent` bytes from `address`; nullopt for arrays
  // and for memory that is not the session's.
  std::optional<Side> LinearSide(wire::MemorySide side, std::uint64_t address, Bytes extent,
                                 cuda_api::Access access) const;

 private:
  SessionMemory& memory_;
  const SessionModules& modules_;
};

}  // namespace torpor::executor
