#include "client_shim/core/transport/grpc_frame_stream.h"

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

GrpcFrameStream::GrpcFrameStream(const Nghttp2& http2, UniqueFd socket)
    : stream_(http2, std::move(socket), "/torpor.v1.Execution/Run") {
  ForkGuard::Watch(stream_.fd());
}

GrpcFrameStream::~GrpcFrameStream() { ForkGuard::Unwatch(stream_.fd()); }

void GrpcFrameStream::Send(std::vector<std::uint8_t>& frame) {
  stream_.Send(std::move(frame));
  frame = {};
}

FrameStream::Arrival GrpcFrameStream::Await(bool waits) {
  if (read_buffer_.empty()) read_buffer_.resize(kReadBytes);
  const ssize_t got = waits ? AwaitBytes(fd(), read_buffer_.data(), kReadBytes)
                            : Receive(fd(), read_buffer_.data(), kReadBytes, MSG_DONTWAIT);
  received_ = got > 0 ? static_cast<std::size_t>(got) : 0;
  if (got == -1) return Arrival::kNothing;
  return got > 0 ? Arrival::kBytes : Arrival::kEnd;
}

void GrpcFrameStream::Take(Arrival arrival) {
  if (arrival == Arrival::kBytes) stream_.Feed({read_buffer_.data(), received_});
  if (arrival == Arrival::kEnd) stream_.FeedEnd("the executor closed the connection");
}

bool GrpcFrameStream::Next(std::span<const std::uint8_t>& payload) {
  return !stream_.closed() && stream_.Next(payload);
}

void GrpcFrameStream::End(const std::string& why) {
  stream_.FeedEnd(why);
  ForkGuard::Unwatch(stream_.fd());
  shutdown(stream_.fd(), SHUT_RDWR);  // wakes the thread that reads
}

// An idle stream is not watched: the service thread would wake at every reply that another thread
// reads.
FrameStream::Polled GrpcFrameStream::Prepare(bool reads) {
  const int out = stream_.socket_is_full() ? POLLOUT : 0;
  const int in = reads ? POLLIN : 0;
  return {static_cast<short>(in | out), false};
}

bool GrpcFrameStream::OnEvents(short events) { return (events & POLLOUT) != 0; }

}  // namespace torpor::shim
