#include "client_shim/core/memory/memory_requests.h"

#include <utility>

#include "base/try.h"
#include "client_shim/core/call_tracer.h"

namespace torpor::shim {

template <typename Reply>
cudaError_t MemoryRequests::Ask(std::uint64_t id, const wire::ClientMessage& request,
                                Reply& reply) {
  TORPOR_TRY(health_.Check());
  const TracedWait wait(TracedWaitFor::kDaemon);
  wire::ServerMessage message;
  if (const cudaError_t error = daemon_->Ask(id, request, message); error != cudaSuccess)
    return error;
  auto* const found = std::get_if<Reply>(&message);
  if (!found) return cudaErrorUnknown;
  reply = std::move(*found);
  return cudaSuccess;
}

cudaError_t MemoryRequests::AskAddress(std::uint64_t id, const wire::ClientMessage& request,
                                       std::uint64_t& address) {
  wire::MemoryReply reply;
  TORPOR_TRY(Ask(id, request, reply));
  if (reply.error != 0) log_.Debug("memory: " + reply.message);
  address = reply.address;
  return static_cast<cudaError_t>(reply.error);
}

cudaError_t MemoryRequests::Malloc(std::uint64_t bytes, std::uint64_t& address) {
  const std::uint64_t id = NextId();
  return AskAddress(id, wire::Malloc{id, bytes}, address);
}

cudaError_t MemoryRequests::Free(std::uint64_t address) {
  const std::uint64_t id = NextId();
  std::uint64_t ignored = 0;
  return AskAddress(id, wire::Free{id, address}, ignored);
}

void MemoryRequests::FreeUnasked(std::uint64_t address) {
  const std::uint64_t id = NextId();
  daemon_->Tell(id, wire::Free{id, address});
}

cudaError_t MemoryRequests::HostAlloc(std::uint64_t bytes, std::uint64_t& address) {
  const std::uint64_t id = NextId();
  return AskAddress(id, wire::HostAlloc{id, bytes}, address);
}

cudaError_t MemoryRequests::HostFree(std::uint64_t address) {
  const std::uint64_t id = NextId();
  std::uint64_t ignored = 0;
  return AskAddress(id, wire::HostFree{id, address}, ignored);
}

cudaError_t MemoryRequests::MemGetInfo(std::uint64_t& free_bytes, std::uint64_t& total_bytes) {
  const std::uint64_t id = NextId();
  wire::MemGetInfoReply reply;
  if (const cudaError_t error = Ask(id, wire::MemGetInfo{id}, reply); error != cudaSuccess)
    return error;
  free_bytes = reply.free_bytes;
  total_bytes = reply.total_bytes;
  return cudaSuccess;
}

cudaError_t MemoryRequests::Share(std::uint64_t address, std::array<std::uint8_t, 16>& token) {
  const std::uint64_t id = NextId();
  wire::ShareMemoryReply reply;
  if (const cudaError_t error = Ask(id, wire::ShareMemory{id, address}, reply);
      error != cudaSuccess)
    return error;
  if (reply.error != 0) log_.Debug("sharing memory: " + reply.message);
  token = reply.token;
  return static_cast<cudaError_t>(reply.error);
}

cudaError_t MemoryRequests::Open(const ClientCore::MemoryHandle& handle,
                                 wire::OpenMemoryReply& reply) {
  const std::uint64_t id = NextId();
  const wire::OpenMemory request{id, handle.owner_session, handle.address, handle.token};
  TORPOR_TRY(Ask(id, request, reply));
  if (reply.error != 0) log_.Debug("opening memory of another process: " + reply.message);
  return static_cast<cudaError_t>(reply.error);
}

cudaError_t MemoryRequests::Close(const ClientCore::MemoryHandle& handle) {
  const std::uint64_t id = NextId();
  std::uint64_t ignored = 0;
  return AskAddress(id, wire::CloseMemory{id, handle.owner_session, handle.address}, ignored);
}

}  // namespace torpor::shim
