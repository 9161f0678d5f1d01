#include "server/controller/memory/memory_limits.h"

#include <algorithm>

namespace torpor::server {

Bytes MemoryLimits::LimitOf(const FunctionInstance& instance) const {
  const Bytes configured = instance.config().memory_limit;
  return configured > 0 ? configured : executors_.LargestPool(chunk_bytes_);
}

Bytes MemoryLimits::LiveBytes(const FunctionInstance& instance, int device_index) const {
  Bytes bytes = 0;
  for (const SessionPtr& session : sessions_.Of(instance)) {
    if (session->device_index == device_index) bytes += session->memory.device->live_bytes();
  }
  return bytes;
}

Bytes MemoryLimits::FreeBytes(const FunctionInstance& instance, int device_index) const {
  const Bytes limit = LimitOf(instance);
  return limit - std::min(limit, LiveBytes(instance, device_index));
}

}  // namespace torpor::server
