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

Bytes MemoryLimits::PinnedLimitOf(const FunctionInstance& instance) const {
  const Bytes configured = instance.config().pinned_limit;
  if (configured > 0) return configured;
  return std::max(kLeastPinned, LimitOf(instance) * instance.shards.size());
}

Bytes MemoryLimits::PinnedBytes(const FunctionInstance& instance) const {
  Bytes bytes = 0;
  for (const SessionPtr& session : sessions_.Of(instance)) {
    if (session->memory.host) bytes += session->memory.host->live_bytes();
  }
  return bytes;
}

}  // namespace torpor::server
