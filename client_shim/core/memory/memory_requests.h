#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "client_shim/core/client_core.h"
#include "client_shim/core/log.h"
#include "client_shim/core/session_health.h"
#include "client_shim/core/transport/daemon_port.h"

namespace torpor::shim {

// A session's requests to torpord about memory, each of which waits for the answer. Sizes are in
// bytes. Every function returns SessionHealth::Check's error, or the daemon's. Thread-safe.
class MemoryRequests {
 public:
  // Both must outlive this object.
  MemoryRequests(const SessionHealth& health, const Log& log) : health_(health), log_(log) {}

  // Directs requests to `daemon`, which must outlive this object. Call before the session is open.
  void Connect(DaemonPort& daemon) { daemon_ = &daemon; }

  cudaError_t Malloc(std::uint64_t bytes, std::uint64_t& address);
  cudaError_t Free(std::uint64_t address);
  // As Free, without waiting for the answer.
  void FreeUnasked(std::uint64_t address);
  // Pinned memory of the process's host arena; the primary session's requests only.
  cudaError_t HostAlloc(std::uint64_t bytes, std::uint64_t& address);
  cudaError_t HostFree(std::uint64_t address);
  cudaError_t MemGetInfo(std::uint64_t& free_bytes, std::uint64_t& total_bytes);

  // See ClientCore::ShareMemory; `token` proves the right to open the memory.
  cudaError_t Share(std::uint64_t address, std::array<std::uint8_t, 16>& token);
  cudaError_t Open(const ClientCore::MemoryHandle& handle, wire::OpenMemoryReply& reply);
  cudaError_t Close(const ClientCore::MemoryHandle& handle);

 private:
  std::uint64_t NextId() { return next_request_.fetch_add(1, std::memory_order_relaxed); }
  // Asks, and takes the answer's alternative `Reply`.
  template <typename Reply>
  cudaError_t Ask(std::uint64_t id, const wire::ClientMessage& request, Reply& reply);
  cudaError_t AskAddress(std::uint64_t id, const wire::ClientMessage& request,
                         std::uint64_t& address);

  const SessionHealth& health_;
  const Log& log_;
  DaemonPort* daemon_ = nullptr;
  std::atomic<std::uint64_t> next_request_{1};
};

}  // namespace torpor::shim
