#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "client_shim/cudart/memory/pool_memory.h"
#include "client_shim/cudart/stream/stream.h"

// The places in the order of streams at which memory was freed.
namespace torpor::shim {

// A stream's name across devices. The legacy streams have the devices' indices, which no handle is.
std::uint64_t NameOf(const Stream& stream);
// As commands name it.
std::uint64_t WireOf(std::uint64_t name);
// Whether it is a live stream of the device in use.
bool IsStreamHere(std::uint64_t name);

// Completion slots in which the frees of streams leave their marks. Not thread-safe.
class FreeMarks {
 public:
  // Marks a free in `stream`, which is the device in use's. No point if the stream has already come
  // to it; so it has, having been waited for, where no slot is left.
  cudaError_t Mark(const Stream& stream, FreePointPtr& point);
  void Forget() { slots_.clear(); }

 private:
  class Slot;
  class Point;

  std::shared_ptr<const Slot> SlotOf(std::uint64_t stream);

  std::unordered_map<std::uint64_t, std::weak_ptr<const Slot>> slots_;  // by stream
};

}  // namespace torpor::shim
