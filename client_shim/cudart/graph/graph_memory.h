#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>

#include "client_shim/core/client_core.h"

namespace torpor::shim {

// Device memory of an allocation node, at a fixed address from the making of the node. Lives as
// long as any graph has the node, and while the program has memory allocated by a launch.
// Thread-safe.
class GraphMemory {
 public:
  // Allocates memory of the device in use.
  static cudaError_t Allocate(std::uint64_t bytes, std::shared_ptr<GraphMemory>& memory);
  // Finds the memory that begins at `address`; null if there is no such memory.
  static std::shared_ptr<GraphMemory> Find(std::uint64_t address);
  // Waits for the device's work, then frees the memory, unless forgotten.
  ~GraphMemory();
  GraphMemory(const GraphMemory&) = delete;
  GraphMemory& operator=(const GraphMemory&) = delete;

  // The core of the memory's device.
  const ClientCore& core() const { return core_; }
  std::uint64_t address() const { return address_; }
  std::uint64_t bytes() const { return bytes_; }

  // Called when a launch has allocated the memory (true), or a launch or the program has freed the
  // memory (false).
  void SetInUse(bool in_use);
  bool is_in_use() const;

 private:
  GraphMemory(ClientCore& core, std::uint64_t address, std::uint64_t bytes);

  ClientCore& core_;
  const std::uint64_t address_;
  const std::uint64_t bytes_;
};

// cudaFree of memory allocated by a launch. Returns false if no graph's memory begins at `address`.
bool FreeGraphMemory(std::uint64_t address, cudaError_t& result);

// Forgets all graph memory of the device in use, whose memory was freed as a whole
// (cudaDeviceReset). Graphs that still have the memory can do no harm.
void ForgetGraphMemory();

// Bytes of all allocation nodes (reserved), and of those that a launch has allocated since the last
// trimming (used).
struct GraphMemoryUse {
  std::uint64_t used = 0;
  std::uint64_t max_used = 0;
  std::uint64_t reserved = 0;
  std::uint64_t max_reserved = 0;
};
GraphMemoryUse CurrentGraphMemoryUse();
// Counts only the memory in use now as used.
void TrimGraphMemory();
// Lower the high-water marks to the present values.
void ResetMaxUsed();
void ResetMaxReserved();

}  // namespace torpor::shim
