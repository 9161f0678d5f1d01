#include "client_shim/core/transport/executor_link.h"

#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <thread>
#include <utility>

#include "client_shim/core/fork_guard.h"
#include "client_shim/core/transport/unix_socket.h"

namespace torpor::shim {
namespace {

constexpr std::size_t kReadBytes = std::size_t{64} * 1024;
// How long a thread polls for its reply before it sleeps: a little more than an idle executor
// takes, so that the common reply costs no wake-up and a long kernel costs no processor.
constexpr std::chrono::microseconds kReplyPoll{60};

// As Receive, but waits: polls for kReplyPoll, yielding to other threads, and then sleeps.
ssize_t AwaitBytes(int socket, void* data, std::size_t bytes) {
  const auto until = std::chrono::steady_clock::now() + kReplyPoll;
  while (std::chrono::steady_clock::now() < until) {
    if (const ssize_t got = Receive(socket, data, bytes, MSG_DONTWAIT); got != -1) return got;
    std::this_thread::yield();
  }
  return Receive(socket, data, bytes, 0);
}

}  // namespace

ExecutorLink::ExecutorLink(const Nghttp2& http2, UniqueFd socket)
    : stream_(http2, std::move(socket), "/torpor.v1.Execution/Run") {
  ForkGuard::Watch(stream_.fd());
}

ExecutorLink::~ExecutorLink() { ForkGuard::Unwatch(stream_.fd()); }

bool ExecutorLink::HasWaiter() const {
  for (const PendingReply& reply : pending_)
    if (reply.waiter) return true;
  return false;
}

void ExecutorLink::Read(Lock& lock, bool waits) {
  if (read_buffer_.empty()) read_buffer_.resize(kReadBytes);
  is_being_read_ = true;
  lock.unlock();
  const int socket = stream_.fd();
  std::uint8_t* const buffer = read_buffer_.data();
  const ssize_t got = waits ? AwaitBytes(socket, buffer, kReadBytes)
                            : Receive(socket, buffer, kReadBytes, MSG_DONTWAIT);
  lock.lock();
  is_being_read_ = false;
  if (got > 0)
    stream_.Feed({buffer, static_cast<std::size_t>(got)});
  else if (got != -1)
    stream_.FeedEnd("the executor closed the connection");
}

bool ExecutorLink::HandOverReading() {
  if (is_being_read_) return false;
  for (const PendingReply& reply : pending_) {
    if (!reply.waiter) continue;
    reply.waiter->changed.notify_one();
    return false;
  }
  return !pending_.empty() || stream_.unsent_bytes() > 0;
}

bool ExecutorLink::Next(wire::Reply& reply, PendingReply& answered) {
  std::span<const std::uint8_t> payload;
  if (stream_.closed() || !stream_.Next(payload)) return false;
  reply = {};
  wire::Reader reader(payload);
  reader(reply);
  if (reader.done() && reply.call_id == static_cast<std::uint32_t>(wire::ProtocolCall::kOutput)) {
    answered = {PendingReply::Kind::kOutput, reply.call_id, nullptr};
    return true;
  }
  if (!reader.done() || pending_.empty() || pending_.front().call_id != reply.call_id) {
    stream_.FeedEnd("the executor sent a malformed reply");
    return false;
  }
  answered = pending_.front();
  pending_.pop_front();
  return true;
}

bool ExecutorLink::Break(cudaError_t error, const std::string& why) {
  stream_.FeedEnd(why);
  ForkGuard::Unwatch(stream_.fd());
  shutdown(stream_.fd(), SHUT_RDWR);  // wakes the thread that reads
  bool tells_program = false;
  for (const PendingReply& reply : pending_) {
    if (!reply.waiter) continue;
    tells_program = tells_program || reply.waiter->tells_program;
    reply.waiter->error = error;
    reply.waiter->done = true;
    reply.waiter->changed.notify_one();
  }
  pending_.clear();
  return tells_program;
}

short ExecutorLink::EventsToWatch() const {
  int events = 0;
  if (stream_.socket_is_full()) events |= POLLOUT;
  const bool has_reading_for_service = stream_.unsent_bytes() > 0 || !pending_.empty();
  if (!is_being_read_ && !HasWaiter() && has_reading_for_service) events |= POLLIN;
  return static_cast<short>(events);
}

}  // namespace torpor::shim
