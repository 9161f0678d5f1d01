#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>

#include "client_shim/core/client_core.h"

namespace torpor::shim {

// Device memory of an allocation node. Its address is the node's from the beginning; it is kept
// as long as a graph has the node, and while the program has what a launch has allocated.
class GraphMemory {
 public:
  // Of the device in use.
  static cudaError_t Allocate(std::uint64_t bytes, std::shared_ptr<GraphMemory>& memory);
  // That begins at `address`; null if none does.
  static std::shared_ptr<GraphMemory> Find(std::uint64_t address);
  // Waits for the device's work, which may use it. Nothing if it was forgotten.
  ~GraphMemory();
  GraphMemory(const GraphMemory&) = delete;
  GraphMemory& operator=(const GraphMemory&) = delete;

  // Of its device.
  const ClientCore& core() const { return core_; }
  std::uint64_t address() const { return address_; }
  std::uint64_t bytes() const { return bytes_; }

  // A launch has allocated it, or a launch or the program has freed it.
  void SetInUse(bool in_use);
  bool is_in_use() const;

 private:
  GraphMemory(ClientCore& core, std::uint64_t address, std::uint64_t bytes);

  ClientCore& core_;
  const std::uint64_t address_;
  const std::uint64_t bytes_;
};

// For cudaFree: frees what a launch has allocated. False: nothing of a graph begins there.
bool FreeGraphMemory(std::uint64_t address, cudaError_t& result);

// What there is on the device in use was freed with all of its memory (cudaDeviceReset): graphs
// that still have it can do no harm.
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
// What is not in use now no longer counts as used.
void TrimGraphMemory();
void ResetMostUsed();
void ResetMostReserved();

}  // namespace torpor::shim
