#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "client_shim/cudart/memory/pool_memory.h"
#include "client_shim/cudart/stream/stream.h"

// Places in the order of streams at which memory was freed, observed by way of completion slots.
namespace torpor::shim {

// A stream's name, unique across devices: the wire name, or for a legacy stream the device's index,
// which equals no handle.
std::uint64_t NameOf(const ClientStream& stream);
// The stream's name in commands.
std::uint64_t WireOf(std::uint64_t name);
// Whether the name is a live stream's of the device in use.
bool IsStreamHere(std::uint64_t name);

// Completion slots for marks of frees, one slot a stream. Not thread-safe.
class FreeMarks {
 public:
  // Marks a free in `stream` of the device in use. `point` is null if the stream has passed the
  // place already; without a free slot, waits for the stream.
  cudaError_t Mark(const ClientStream& stream, FreePointPtr& point);
  void Forget() { slots_.clear(); }

 private:
  class Slot;
  class Point;

  std::shared_ptr<const Slot> SlotOf(std::uint64_t stream);

  std::unordered_map<std::uint64_t, std::weak_ptr<const Slot>> slots_;  // by stream
};

}  // namespace torpor::shim
