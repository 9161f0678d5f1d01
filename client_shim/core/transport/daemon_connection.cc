#include "client_shim/core/transport/daemon_connection.h"

#include <poll.h>
#include <sys/socket.h>

#include <optional>
#include <utility>

#include "client_shim/core/fork_guard.h"
#include "client_shim/core/transport/frame_codec.h"
#include "client_shim/core/transport/unix_socket.h"

namespace torpor::shim {
namespace {

// The request id of an answer; nullopt for other messages.
std::optional<std::uint64_t> RequestOf(const wire::ServerMessage& message) {
  return std::visit(
      [](const auto& alternative) -> std::optional<std::uint64_t> {
        if constexpr (requires { alternative.request_id; })
          return alternative.request_id;
        else
          return std::nullopt;
      },
      message);
}

}  // namespace

DaemonConnection::DaemonConnection(std::unique_ptr<GrpcStream> stream, std::function<void()> wake)
    : wake_(std::move(wake)), stream_(std::move(stream)) {
  ForkGuard::Watch(stream_->fd());
}

DaemonConnection::~DaemonConnection() { ForkGuard::Unwatch(stream_->fd()); }

void DaemonConnection::Send(const wire::ClientMessage& message) {
  const std::lock_guard lock(mutex_);
  SendLocked(message);
}

void DaemonConnection::SendLocked(const wire::ClientMessage& message) {
  stream_->Send(Framed(wire::EncodeMessage(message)));
  stream_->Write();
  if (stream_->socket_is_full()) wake_();
}

cudaError_t DaemonConnection::Ask(std::uint64_t request_id, const wire::ClientMessage& request,
                                  wire::ServerMessage& reply) {
  Waiter waiter;
  std::unique_lock lock(mutex_);
  if (is_lost_) return cudaErrorDevicesUnavailable;
  waiters_.emplace(request_id, &waiter);
  SendLocked(request);
  waiter.changed.wait(lock, [&] { return waiter.is_done; });
  reply = std::move(waiter.reply);
  return waiter.error;
}

void DaemonConnection::Tell(std::uint64_t request_id, const wire::ClientMessage& request) {
  const std::lock_guard lock(mutex_);
  if (is_lost_) return;
  told_.insert(request_id);
  SendLocked(request);
}

short DaemonConnection::EventsToWatch() const {
  const std::lock_guard lock(mutex_);
  const int out = stream_->socket_is_full() ? POLLOUT : 0;
  return static_cast<short>(POLLIN | out);
}

bool DaemonConnection::IsClosed(std::string& why) const {
  const std::lock_guard lock(mutex_);
  if (stream_->closed()) why = stream_->why_closed();
  return stream_->closed();
}

void DaemonConnection::Transfer() {
  std::uint8_t buffer[16 * 1024];
  const std::lock_guard lock(mutex_);
  stream_->Write();
  const ssize_t got = Receive(stream_->fd(), buffer, sizeof buffer, MSG_DONTWAIT);
  if (got > 0) stream_->Feed({buffer, static_cast<std::size_t>(got)});
  if (got == 0 || got == -2) stream_->FeedEnd("it closed the connection");
}

void DaemonConnection::AwaitEnd(Deadline deadline) {
  std::string why;
  while (!IsClosed(why) && PollUntil(fd(), EventsToWatch(), deadline)) Transfer();
}

DaemonConnection::Step DaemonConnection::Next(wire::ServerMessage& message) {
  const std::lock_guard lock(mutex_);
  std::span<const std::uint8_t> payload;
  if (is_lost_ || !stream_->Next(payload)) return Step::kNothing;
  return wire::DecodeMessage(payload, message) ? Step::kMessage : Step::kMalformed;
}

bool DaemonConnection::Answer(wire::ServerMessage message) {
  const std::optional<std::uint64_t> request = RequestOf(message);
  const std::lock_guard lock(mutex_);
  if (request && told_.erase(*request) > 0) return true;
  const auto found = request ? waiters_.find(*request) : waiters_.end();
  if (found == waiters_.end()) return false;
  Waiter& waiter = *found->second;
  waiters_.erase(found);
  waiter.reply = std::move(message);
  Finish(waiter, cudaSuccess);
  return true;
}

void DaemonConnection::Close(const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (is_lost_) return;
  is_lost_ = true;
  stream_->FeedEnd(why);
  shutdown(stream_->fd(), SHUT_RDWR);
  for (const auto& [request, waiter] : waiters_) Finish(*waiter, cudaErrorDevicesUnavailable);
  waiters_.clear();
}

void DaemonConnection::Finish(Waiter& waiter, cudaError_t error) {
  waiter.error = error;
  waiter.is_done = true;
  waiter.changed.notify_one();
}

}  // namespace torpor::shim
