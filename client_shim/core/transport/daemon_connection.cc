#include "client_shim/core/transport/daemon_connection.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
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
  if (stream_->closed()) return;
  stream_->Send(Framed(wire::EncodeMessage(message)));
  stream_->Write();
  if (stream_->socket_is_full()) wake_();
}

cudaError_t DaemonConnection::Ask(std::uint64_t request_id, const wire::ClientMessage& request,
                                  wire::ServerMessage& reply) {
  Waiter waiter;
  std::unique_lock lock(mutex_);
  if (is_lost_) return cudaErrorDevicesUnavailable;
  unanswered_.push_back({request_id, request, &waiter});
  SendLocked(request);
  waiter.changed.wait(lock, [&] { return waiter.is_done; });
  reply = std::move(waiter.reply);
  return waiter.error;
}

void DaemonConnection::Tell(std::uint64_t request_id, const wire::ClientMessage& request) {
  const std::lock_guard lock(mutex_);
  if (is_lost_) return;
  unanswered_.push_back({request_id, request, nullptr});
  SendLocked(request);
}

short DaemonConnection::EventsToWatch() const {
  const std::lock_guard lock(mutex_);
  return stream_->EventsToWatch();
}

bool DaemonConnection::IsClosed(std::string& why) const {
  const std::lock_guard lock(mutex_);
  if (stream_->closed()) why = stream_->why_closed();
  return stream_->closed();
}

void DaemonConnection::Transfer() {
  const std::lock_guard lock(mutex_);
  stream_->Transfer();
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
  if (!request) return false;
  // Answers mostly come in the order of the requests: the first one is the one.
  const auto found = std::ranges::find(unanswered_, *request, &Request::id);
  if (found == unanswered_.end()) return false;
  Waiter* const waiter = found->waiter;
  unanswered_.erase(found);
  if (!waiter) return true;
  waiter->reply = std::move(message);
  Finish(*waiter, cudaSuccess);
  return true;
}

void DaemonConnection::Suspend() {
  const std::lock_guard lock(mutex_);
  stream_->FeedEnd("the connection has ended");
  shutdown(stream_->fd(), SHUT_RDWR);
}

void DaemonConnection::Resume(std::unique_ptr<GrpcStream> stream) {
  const std::lock_guard lock(mutex_);
  if (is_lost_) return;
  ForkGuard::Unwatch(stream_->fd());
  stream_ = std::move(stream);
  ForkGuard::Watch(stream_->fd());
  for (const Request& request : unanswered_) SendLocked(request.message);
}

void DaemonConnection::Close(const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (is_lost_) return;
  is_lost_ = true;
  stream_->FeedEnd(why);
  shutdown(stream_->fd(), SHUT_RDWR);
  for (const Request& request : unanswered_)
    if (request.waiter) Finish(*request.waiter, cudaErrorDevicesUnavailable);
  unanswered_.clear();
}

void DaemonConnection::Finish(Waiter& waiter, cudaError_t error) {
  waiter.error = error;
  waiter.is_done = true;
  waiter.changed.notify_one();
}

}  // namespace torpor::shim
