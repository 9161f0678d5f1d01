#include <algorithm>
#include <cstring>
#include <string>

#include "client_shim/core/session.h"

// Memory that processes of the function share.
namespace torpor::shim {

bool Session::HasMemoryAlone() const { return hello_.devices.size() == 1 && !shares_memory_; }

cudaError_t Session::ShareMemory(std::uint64_t address, MemoryHandle& handle) {
  shares_memory_ = true;
  const std::uint64_t id = next_request_++;
  wire::ServerMessage message;
  if (const cudaError_t error = Ask(id, wire::ShareMemory{id, address}, message);
      error != cudaSuccess)
    return error;
  const auto* reply = std::get_if<wire::ShareMemoryReply>(&message);
  if (!reply) return cudaErrorUnknown;
  if (reply->error != 0) log_.Debug("sharing memory: " + reply->message);
  handle = {hello_.session_id, address, reply->token};
  return static_cast<cudaError_t>(reply->error);
}

cudaError_t Session::OpenMemory(const MemoryHandle& handle, Allocation& opened) {
  if (this != &first_) return first_.OpenMemory(handle, opened);
  shares_memory_ = true;
  std::lock_guard lock(foreign_mutex_);
  ForeignMemory::Opened* const known = foreign_.Find(handle.address);
  if (!known) return AskToOpen(handle, opened);
  if (known->handle.token != handle.token) return cudaErrorInvalidResourceHandle;
  ++known->uses;
  return allocations_.Find(handle.address, opened) ? cudaSuccess : cudaErrorUnknown;
}

cudaError_t Session::AskToOpen(const MemoryHandle& handle, Allocation& opened) {
  const std::uint64_t id = head_->next_request_++;
  wire::ServerMessage message;
  if (const cudaError_t error = head_->Ask(
          id, wire::OpenMemory{id, handle.owner_session, handle.address, handle.token}, message);
      error != cudaSuccess)
    return error;
  const auto* reply = std::get_if<wire::OpenMemoryReply>(&message);
  if (!reply) return cudaErrorUnknown;
  if (reply->error != 0) {
    log_.Debug("opening memory of another process: " + reply->message);
    return static_cast<cudaError_t>(reply->error);
  }
  if (const int code = foreign_.Add(handle, reply->range_base, reply->range_bytes); code != 0) {
    log_.Warn(std::string("the addresses of another process's memory are taken here: ") +
              std::strerror(code));
    AskToClose(handle);
    return cudaErrorMapBufferObjectFailed;
  }
  // That of a device which this program does not see is to it a piece of its first one.
  opened = {handle.address, reply->bytes, true, std::max(0, VisibleDevice(reply->device)), true};
  allocations_.Insert(opened);
  return cudaSuccess;
}

cudaError_t Session::AskToClose(const MemoryHandle& handle) {
  const std::uint64_t id = head_->next_request_++;
  std::uint64_t ignored = 0;
  return head_->AskAddress(id, wire::CloseMemory{id, handle.owner_session, handle.address},
                           ignored);
}

cudaError_t Session::CloseMemory(std::uint64_t address) {
  if (this != &first_) return first_.CloseMemory(address);
  std::lock_guard lock(foreign_mutex_);
  ForeignMemory::Opened* const known = foreign_.Find(address);
  if (!known) return cudaErrorInvalidValue;
  return --known->uses > 0 ? cudaSuccess : CloseLast(address);
}

cudaError_t Session::CloseWholly(std::uint64_t address) {
  if (this != &first_) return first_.CloseWholly(address);
  std::lock_guard lock(foreign_mutex_);
  return foreign_.Find(address) ? CloseLast(address) : cudaSuccess;
}

// The addresses first: the daemon may give them to another session as soon as it hears of it.
cudaError_t Session::CloseLast(std::uint64_t address) {
  const MemoryHandle handle = foreign_.Find(address)->handle;
  allocations_.Erase(address);
  foreign_.Remove(address);
  return AskToClose(handle);
}

}  // namespace torpor::shim
