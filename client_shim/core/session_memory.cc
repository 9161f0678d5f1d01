#include "client_shim/core/call_tracer.h"
#include "client_shim/core/frame_codec.h"
#include "client_shim/core/session.h"

namespace torpor::shim {

void Session::SendControl(const wire::ClientMessage& message) {
  const std::vector<std::uint8_t> payload = wire::EncodeMessage(message);
  std::vector<std::uint8_t> frame(kFrameRoom);
  frame.insert(frame.end(), payload.begin(), payload.end());
  control_->Send(std::move(frame));
  control_->Write();
  if (control_->socket_is_full() && wake_) Wake();
}

cudaError_t Session::Ask(std::uint64_t request_id, const wire::ClientMessage& request,
                         wire::ServerMessage& reply) {
  if (const cudaError_t error = Usable(); error != cudaSuccess) return error;
  const TracedWait wait(TracedWaitFor::kDaemon);
  ControlWaiter waiter;
  Lock lock(mutex_);
  if (lost_daemon_) return cudaErrorDevicesUnavailable;
  control_waiters_.emplace(request_id, &waiter);
  SendControl(request);
  waiter.changed.wait(lock, [&] { return waiter.done; });
  reply = std::move(waiter.reply);
  return waiter.error;
}

void Session::OnMemoryAnswer(std::uint64_t request_id, wire::ServerMessage reply) {
  const auto found = control_waiters_.find(request_id);
  if (found == control_waiters_.end()) return LoseDaemon("it answered what was not asked");
  ControlWaiter& waiter = *found->second;
  control_waiters_.erase(found);
  waiter.reply = std::move(reply);
  waiter.done = true;
  waiter.changed.notify_one();
}

cudaError_t Session::AskAddress(std::uint64_t request_id, const wire::ClientMessage& request,
                                std::uint64_t& address) {
  wire::ServerMessage message;
  if (const cudaError_t error = Ask(request_id, request, message); error != cudaSuccess)
    return error;
  const auto* reply = std::get_if<wire::MemoryReply>(&message);
  if (!reply) return cudaErrorUnknown;
  if (reply->error != 0) log_.Debug("memory: " + reply->message);
  address = reply->address;
  return static_cast<cudaError_t>(reply->error);
}

cudaError_t Session::Malloc(std::uint64_t bytes, std::uint64_t& address) {
  const std::uint64_t id = next_request_++;
  const cudaError_t error = AskAddress(id, wire::Malloc{id, bytes}, address);
  if (error == cudaSuccess) first_.allocations_.Insert({address, bytes, true, device_});
  return error;
}

cudaError_t Session::HostAlloc(std::uint64_t bytes, std::uint64_t& address) {
  return first_.AllocateHost(bytes, device_, address);
}

cudaError_t Session::AllocateHost(std::uint64_t bytes, int device, std::uint64_t& address) {
  const std::uint64_t id = head_->next_request_++;
  const cudaError_t error = head_->AskAddress(id, wire::HostAlloc{id, bytes}, address);
  if (error == cudaSuccess) allocations_.Insert({address, bytes, false, device});
  return error;
}

// The map forgets first, so that of two threads that free the same address one fails.
bool Session::Forget(std::uint64_t address, bool on_device) {
  Allocation allocation;
  return first_.allocations_.Find(address, allocation) && allocation.begin == address &&
         allocation.on_device == on_device && !allocation.is_foreign &&
         first_.allocations_.Erase(address);
}

cudaError_t Session::Free(std::uint64_t address) {
  Allocation allocation;
  if (FindAllocation(address, allocation) && allocation.on_device && allocation.device != device_)
    return OfDevice(allocation.device)->Free(address);
  if (const cudaError_t error = Usable(); error != cudaSuccess) return error;
  if (!Forget(address, true)) return cudaErrorInvalidValue;
  const std::uint64_t id = next_request_++;
  std::uint64_t ignored = 0;
  return AskAddress(id, wire::Free{id, address}, ignored);
}

cudaError_t Session::HostFree(std::uint64_t address) {
  if (this != &first_) return first_.HostFree(address);
  if (const cudaError_t error = Usable(); error != cudaSuccess) return error;
  if (!Forget(address, false)) return cudaErrorInvalidValue;
  const std::uint64_t id = head_->next_request_++;
  std::uint64_t ignored = 0;
  return head_->AskAddress(id, wire::HostFree{id, address}, ignored);
}

cudaError_t Session::Release(const Allocation& allocation) {
  if (allocation.is_foreign) return CloseWholly(allocation.begin);
  return allocation.on_device ? Free(allocation.begin) : HostFree(allocation.begin);
}

cudaError_t Session::FreeAll() {
  for (const Allocation& allocation : first_.allocations_.All()) {
    if (allocation.device != device_) continue;
    const cudaError_t error = Release(allocation);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

ClientCore::Use Session::CurrentUse() const {
  Use use;
  for (const Allocation& allocation : first_.allocations_.All()) {
    const bool is_ours = allocation.device == device_ && !allocation.is_foreign;
    if (allocation.on_device && is_ours) use.allocated_bytes += allocation.bytes;
  }
  Lock lock(mutex_);
  use.recent_share = held_time_.RecentShare(std::chrono::steady_clock::now());
  return use;
}

cudaError_t Session::MemGetInfo(std::uint64_t& free_bytes, std::uint64_t& total_bytes) {
  const std::uint64_t id = next_request_++;
  wire::ServerMessage message;
  if (const cudaError_t error = Ask(id, wire::MemGetInfo{id}, message); error != cudaSuccess)
    return error;
  const auto* reply = std::get_if<wire::MemGetInfoReply>(&message);
  if (!reply) return cudaErrorUnknown;
  free_bytes = reply->free_bytes;
  total_bytes = reply->total_bytes;
  return cudaSuccess;
}

}  // namespace torpor::shim
